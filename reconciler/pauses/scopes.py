"""Who a request belongs to: scopes are read by their attributes, never by their type, and hashed.

Two hashes. `hash_scope` is the documented formula, needed to read and to write symfonic's own tokens; it joins
with ":" and writes "_" for an absent part, so ("a:b", "c") and ("a", "b:c") would be one scope, and one tenant
could redeem another's token. Identifiers that make it ambiguous are therefore refused. `hash_scope_exactly` has
no such pairs and is what Handbell's own answer tokens carry.
"""

import hashlib
import json
from typing import NamedTuple

from .errors import ScopeBindingError

ABSENT = "_"
"""What the documented formula writes for an absent part (the published relative's spelling)."""

_SHORT_HASH_HEX_CHARS = 16
_EXACT_VERSION = "handbell.scope/v1"


class ScopeIds(NamedTuple):
    """The three parts of a scope; an empty part is an absent one."""

    tenant_id: str
    sub_tenant_id: str | None
    namespace: str | None


def read_scope(scope: object) -> ScopeIds:
    """Return the parts of anything that has them as attributes.

    Raises ScopeBindingError where no tenant is named.
    """
    tenant, sub_tenant, namespace = (
        None if (value := getattr(scope, part, None)) is None else str(value)
        for part in ("tenant_id", "sub_tenant_id", "namespace")
    )
    if not tenant:
        raise ScopeBindingError("the scope names no tenant")
    return ScopeIds(tenant, sub_tenant or None, namespace or None)


def is_ambiguous(part: str | None) -> bool:
    """Return whether the documented formulas could take this identifier for something else."""
    return part is not None and (":" in part or part == ABSENT)


def hash_scope(scope: object) -> str:
    """Return the documented hash: 16 hex digits of SHA-256 over `tenant:sub:namespace`.

    Raises ScopeBindingError where no tenant is named, or where a part contains ":" or is "_".
    """
    ids = read_scope(scope)
    if any(is_ambiguous(part) for part in ids):
        raise ScopeBindingError('a scope identifier that contains ":" or is "_" cannot be told apart from others')
    text = f"{ids.tenant_id}:{ids.sub_tenant_id or ABSENT}:{ids.namespace or ABSENT}"
    return _sha256(text)[:_SHORT_HASH_HEX_CHARS]


def hash_scope_exactly(scope: object) -> str:
    """Return 64 hex digits of SHA-256 over a JSON array of the parts: no two scopes share one.

    Raises ScopeBindingError where no tenant is named.
    """
    return _sha256(json.dumps([_EXACT_VERSION, *read_scope(scope)], separators=(",", ":")))


def _sha256(text: str) -> str:
    try:
        return hashlib.sha256(text.encode("utf-8")).hexdigest()
    except UnicodeEncodeError as error:
        raise ScopeBindingError("a scope identifier is not text") from error
