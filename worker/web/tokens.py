"""The credentials of a source that pushes: several may be valid at once, and only their digests are kept in memory."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from config.errors import SettingsError

_DIGEST_PREFIX = "sha256:"
_DIGEST_BYTES = 32
_TOKEN_BYTES = 32


class Tokens:
    """Tells whether a presented token is one of ours, in a time that does not depend on which or how nearly.

    A configured token is either the token itself or `sha256:` and the 64 hex digits of its digest. Raises
    SettingsError where such a digest cannot be one, or where there is no token at all.
    """

    def __init__(self, configured: Iterable[str]) -> None:
        self._digests = tuple(_digest(token) for token in configured)
        if not self._digests:
            raise SettingsError("a source that is pushed to needs at least one token")

    def accept(self, presented: str) -> bool:
        """Answer whether `presented` is valid; every digest is compared, always."""
        digest = hashlib.sha256(presented.encode("utf-8", "surrogateescape")).digest()
        is_valid = False
        for known in self._digests:
            is_valid |= hmac.compare_digest(known, digest)
        return is_valid


def first_run_token(state_dir: Path, namespace: str, door: str = "handoff") -> str:
    """Return the token that stands in `state_dir` for a namespace's door, made at the first call (file mode 0600).

    Several processes may call it at once and get the same. Raises SettingsError where the file cannot be used.
    """
    path = token_path(state_dir, namespace, door)
    made = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        if not path.exists():
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(_TOKEN_BYTES) + "\n")
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(made, path)  # of two processes one wins, and nobody ever reads half a token
            except FileExistsError:
                pass
            finally:
                made.unlink()
        token = path.read_text().strip()
    except OSError as error:
        raise SettingsError(f"the token file {path} cannot be used ({error.strerror})") from error
    if not token:
        raise SettingsError(f"the token file {path} is empty: remove it, and another token is made")
    return token


def token_path(state_dir: Path, namespace: str, door: str = "handoff") -> Path:
    """Return where the first-run token of a namespace's door is kept."""
    return state_dir / f"{door}-{quote(namespace, safe='')}.token"


def export_lines(public_url: str, namespace: str, token: str) -> tuple[str, str]:
    """Return the two shell lines that connect a Cayu agent."""
    base = f"{public_url.rstrip('/')}/handoff/{quote(namespace, safe='')}"
    return (f"export CAYU_ATTENTION_HANDOFF_URL={base}", f"export CAYU_ATTENTION_HANDOFF_TOKEN={token}")


def capture_line(public_url: str, namespace: str, token: str) -> str:
    """Return the line of Python that captures pauses of a paused-run source."""
    url = f"{public_url.rstrip('/')}/capture/{quote(namespace, safe='')}"
    return f'PauseCapture("{url}", token="{token}")'


def _digest(configured: str) -> bytes:
    if not configured.startswith(_DIGEST_PREFIX):
        if not configured or configured != configured.strip():
            raise SettingsError("a token of a source that is pushed to is empty or has space around it")
        return hashlib.sha256(configured.encode()).digest()
    try:
        digest = bytes.fromhex(configured.removeprefix(_DIGEST_PREFIX))
    except ValueError:
        digest = b""
    if len(digest) != _DIGEST_BYTES:
        raise SettingsError("a token of a source that is pushed to begins with sha256: but 64 hex digits do not follow")
    return digest
