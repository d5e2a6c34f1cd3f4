"""The names on the wire, which the emitter and the consumer share."""

STREAM = "handbell:hints"
GROUP = "handbell"
REPLY_PREFIX = "handbell:ack:"
CONSUMER_KEY = "handbell:consumer"  # lives only while a consumer can write to its database
RECOVERY_PREFIX = "handbell:recovery:"


def reply_key(token: str) -> str:
    """Return the list that the consumer answers on; `token` is checked (32 hex digits), never a key of the entry's."""
    return REPLY_PREFIX + token
