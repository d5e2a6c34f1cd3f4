"""What Slack's answers mean: one table for the Web API's error words, one for statuses, one for incoming webhooks.

Sources (read 2026-11-30): the error lists of https://docs.slack.dev/reference/methods/chat.postMessage,
https://docs.slack.dev/reference/methods/chat.update and
https://docs.slack.dev/reference/methods/conversations.history; rate limits:
https://docs.slack.dev/apis/web-api/rate-limits; incoming webhooks:
https://docs.slack.dev/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks.
"""

from datetime import timedelta

from worker.channels.outcomes import FailureReason, Outcome, Permanent, Temporary, Unknown

# `ok: false` words after which trying again changes nothing until a person acts.
PERMANENT_ERRORS = {
    **dict.fromkeys(
        (
            "access_denied",
            "account_inactive",
            "ekm_access_denied",
            "enterprise_is_restricted",
            "invalid_auth",
            "missing_scope",
            "no_permission",
            "not_allowed_token_type",
            "not_authed",
            "org_login_required",
            "team_access_not_granted",
            "token_expired",
            "token_revoked",
            "two_factor_setup_required",
            "user_is_bot",
            "user_is_restricted",
        ),
        FailureReason.UNAUTHORIZED,
    ),
    **dict.fromkeys(
        (
            "channel_not_found",
            "is_archived",
            "is_inactive",
            "not_in_channel",
            "restricted_action",
            "restricted_action_non_threadable_channel",
            "restricted_action_read_only_channel",
            "restricted_action_thread_locked",
            "restricted_action_thread_only_channel",
            "messages_tab_disabled",
            "unknown_method",
        ),
        FailureReason.DESTINATION_GONE,
    ),
    **dict.fromkeys(
        (
            "cant_update_message",
            "edit_window_closed",
            "is_deleted",
            "message_not_found",
            "thread_not_found",
        ),
        FailureReason.TARGET_GONE,
    ),
    **dict.fromkeys(
        (
            "as_user_not_supported",
            "block_mismatch",
            "deprecated_endpoint",
            "invalid_arg_name",
            "invalid_arguments",
            "invalid_array_arg",
            "invalid_blocks",
            "invalid_blocks_format",
            "invalid_charset",
            "invalid_form_data",
            "invalid_metadata_format",
            "invalid_metadata_schema",
            "invalid_post_type",
            "metadata_must_be_sent_from_app",
            "metadata_too_large",
            "method_deprecated",
            "missing_post_type",
            "msg_blocks_too_long",
            "msg_too_long",
            "no_text",
        ),
        FailureReason.REJECTED,
    ),
}

# `ok: false` words that pass by themselves; nothing was done.
TEMPORARY_ERRORS = {
    "accesslimited": FailureReason.SERVER_ERROR,
    "message_limit_exceeded": FailureReason.RATE_LIMITED,
    "rate_limited": FailureReason.RATE_LIMITED,
    "ratelimited": FailureReason.RATE_LIMITED,
    "request_timeout": FailureReason.SERVER_ERROR,  # Slack did not get the whole request
    "service_unavailable": FailureReason.SERVER_ERROR,
    "team_added_to_org": FailureReason.SERVER_ERROR,
    "update_failed": FailureReason.SERVER_ERROR,
}

# Of these Slack says itself that some part of the operation may have succeeded.
UNKNOWN_ERRORS = {
    "fatal_error": FailureReason.SERVER_ERROR,
    "internal_error": FailureReason.SERVER_ERROR,
}

PERMANENT_STATUSES = {
    401: FailureReason.UNAUTHORIZED,
    403: FailureReason.UNAUTHORIZED,
    404: FailureReason.DESTINATION_GONE,
    410: FailureReason.DESTINATION_GONE,
}

TEMPORARY_STATUSES = {
    408: FailureReason.SERVER_ERROR,
    429: FailureReason.RATE_LIMITED,
}

# A gateway that gave up waiting does not know what the server behind it has done.
UNKNOWN_STATUSES = frozenset({502, 504})


def outcome_of_answer(status: int, error: str | None, wait: timedelta | None) -> Outcome:
    """Return what a Web API answer other than `ok: true` means; `error` is Slack's word where there is one."""
    if error is None or status == 429:
        return outcome_of_status(status, wait)
    if error in PERMANENT_ERRORS:
        return Permanent(PERMANENT_ERRORS[error])
    if error in TEMPORARY_ERRORS:
        return Temporary(TEMPORARY_ERRORS[error], wait)
    if error in UNKNOWN_ERRORS:
        return Unknown(UNKNOWN_ERRORS[error])
    return Temporary(FailureReason.BAD_ANSWER, wait)


def outcome_of_status(status: int, wait: timedelta | None) -> Outcome:
    """Return what an answer without Slack's own word means (a gateway's page, an incoming webhook's failure)."""
    if status in PERMANENT_STATUSES:
        return Permanent(PERMANENT_STATUSES[status])
    if status in TEMPORARY_STATUSES:
        return Temporary(TEMPORARY_STATUSES[status], wait)
    if status in UNKNOWN_STATUSES:
        return Unknown(FailureReason.SERVER_ERROR)
    if 300 <= status < 400:
        return Permanent(FailureReason.REDIRECTED)
    if 400 <= status < 500:
        return Permanent(FailureReason.REJECTED)
    if 500 <= status < 600:
        return Temporary(FailureReason.SERVER_ERROR, wait)
    return Unknown(FailureReason.BAD_ANSWER)
