"""Which thread of checkpoints a session's pauses are recorded under."""

from .errors import InteractionConfigurationError, ScopeBindingError
from .scopes import is_ambiguous, read_scope

ABSENT_SUB_TENANT = "_"
"""What stands for no sub-tenant (the published relative's spelling; the documentation names none)."""


def thread_id_for(scope: object, session_id: str) -> str:
    """Return `tenant:sub:session`; the namespace is no part of it.

    Raises InteractionConfigurationError for a missing tenant or session (no fallback to another id: two
    sessions without one would share a thread), and for a tenant or sub-tenant that contains ":" or is "_",
    which would make two threads one. A session id may contain ":", since nothing follows it.
    """
    try:
        ids = read_scope(scope)
    except ScopeBindingError as error:
        raise InteractionConfigurationError("a thread needs a tenant") from error
    if not session_id:
        raise InteractionConfigurationError("a thread needs a session")
    if is_ambiguous(ids.tenant_id) or is_ambiguous(ids.sub_tenant_id):
        raise InteractionConfigurationError('a tenant or sub-tenant that contains ":" or is "_" has no own thread')
    return f"{ids.tenant_id}:{ids.sub_tenant_id or ABSENT_SUB_TENANT}:{session_id}"
