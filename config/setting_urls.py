"""The URLs among the settings, checked when they are read; no error repeats one, they may hold a password."""

from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, SecretStr

from config.written import Written

_REDIS_SCHEMES = ("redis", "rediss", "unix")
_SESSION_FIELDS = ("{session}", "{namespace}")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # read for its check
    except ValueError:
        raise ValueError("is not a URL") from None
    return parts


def _redis_url(url: SecretStr) -> SecretStr:
    if _split(url.get_secret_value()).scheme not in _REDIS_SCHEMES:
        raise ValueError("must be a redis://, rediss:// or unix:// URL")
    return url


def _web_url(url: str) -> str:
    parts = _split(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http:// or https:// URL")
    if parts.username or parts.password:
        raise ValueError("must hold no user name and no password: people will see it")
    return url


def _public_url(url: str) -> str:
    parts = _split(_web_url(url))
    if parts.query or parts.fragment:
        raise ValueError("must hold no query and no fragment: paths are added to it")
    return url.rstrip("/")


def _session_link(pattern: str) -> str:
    rest = _web_url(pattern)
    for field in _SESSION_FIELDS:
        rest = rest.replace(field, "")
    if "{" in rest or "}" in rest or "{session}" not in pattern:
        raise ValueError("must contain {session}, may contain {namespace}, and no other braces")
    return pattern


RedisUrl = Annotated[SecretStr, AfterValidator(_redis_url), Written("secret URL")]
PublicUrl = Annotated[str, AfterValidator(_public_url), Written("http(s) URL")]
SessionLink = Annotated[str, AfterValidator(_session_link), Written("http(s) URL with fields")]
