"""Pause tokens: a run asks a person, stops, and goes on once, with the answer, where it stood.

The human-interaction capability, whole and by itself: the standard library and pydantic, no key material.
"""

from .ask_user import AskUserPayload, AskUserResponse
from .binding import ScopeBinder, call_id_of, hash_payload, hash_payload_body, payload_body
from .capability import HumanInteractionCapability
from .checkpoints import CheckpointCommandPort, InMemoryCheckpoints, PausePayloadStore
from .claims import ASK_USER, LEGACY_CLAIM_KEYS, PauseClaims
from .consumption import (
    ConditionalWriteConsumption,
    ConditionalWritePort,
    ConsumptionPort,
    ConsumptionRecord,
    InMemoryConsumption,
    declared_durability,
    redemption_is_shared,
    require_durable_consumption,
)
from .contribution import Contribution, PreToolStage, TakenPause, ToolCall
from .drain import DEPLOYMENT, PROCESS, DrainProof, DrainScope, RetirementHorizon
from .errors import (
    KEYSET_UNAVAILABLE,
    CallBindingError,
    CheckpointLostError,
    ConsumptionDurabilityError,
    DuplicateInteractionError,
    HumanInteractionError,
    InteractionConfigurationError,
    InteractionRegistrationError,
    OperatedPlatformOnlyError,
    PauseCheckpointNotFoundError,
    PauseTokenError,
    PauseTokenExpiredError,
    PauseTokenReplayedError,
    PauseTokenUnauthorizedError,
    PayloadBindingError,
    ResponseValidationError,
    RetirementHorizonError,
    RunBindingError,
    ScopeBindingError,
    SessionBindingError,
    TokenLedgerError,
    TokenTTLError,
    TurnStateNotRecordedError,
    UnissuedTokenError,
    UnknownInteractionError,
)
from .factory import human_interaction
from .issuance import (
    BACKEND_VERBS,
    BackendIssuanceRecords,
    InProcessIssuanceRecords,
    IssuanceRecordBackendPort,
    IssuanceRecords,
    IssuedToken,
    TokenConsumption,
)
from .keys import ASK_USER_KEY_PREFIX, INTERRUPT_KEY_PREFIX, TURN_STATE_KEY_PREFIX
from .ledger import IssuanceLedgerPort, TokenIssuanceLedger
from .pausing import PausePort
from .registrations import (
    InteractionRegistration,
    InteractionRegistry,
    InteractionSchema,
    ask_user_registration,
)
from .resume import ResumeCommand, ResumeOutcome, ResumePort
from .scopes import hash_scope, hash_scope_exactly
from .threads import ABSENT_SUB_TENANT, thread_id_for
from .tokens import EnvelopeSignerPort, PauseTokenService
from .ttl import DEFAULT_TTL, TTLPolicy
from .turnstate import TurnCheckpoint, TurnCheckpointStore
from .values import (
    CrossScopeRedemption,
    InteractionEvent,
    InteractionToolSpec,
    MintedPause,
    PauseBinding,
    ValidatedPause,
)

__all__ = [
    "ABSENT_SUB_TENANT",
    "ASK_USER",
    "ASK_USER_KEY_PREFIX",
    "BACKEND_VERBS",
    "DEFAULT_TTL",
    "DEPLOYMENT",
    "INTERRUPT_KEY_PREFIX",
    "KEYSET_UNAVAILABLE",
    "LEGACY_CLAIM_KEYS",
    "PROCESS",
    "TURN_STATE_KEY_PREFIX",
    "AskUserPayload",
    "AskUserResponse",
    "BackendIssuanceRecords",
    "CallBindingError",
    "CheckpointCommandPort",
    "CheckpointLostError",
    "ConditionalWriteConsumption",
    "ConditionalWritePort",
    "ConsumptionDurabilityError",
    "ConsumptionPort",
    "ConsumptionRecord",
    "Contribution",
    "CrossScopeRedemption",
    "DrainProof",
    "DrainScope",
    "DuplicateInteractionError",
    "EnvelopeSignerPort",
    "HumanInteractionCapability",
    "HumanInteractionError",
    "InMemoryCheckpoints",
    "InMemoryConsumption",
    "InProcessIssuanceRecords",
    "InteractionConfigurationError",
    "InteractionEvent",
    "InteractionRegistration",
    "InteractionRegistrationError",
    "InteractionRegistry",
    "InteractionSchema",
    "InteractionToolSpec",
    "IssuanceLedgerPort",
    "IssuanceRecordBackendPort",
    "IssuanceRecords",
    "IssuedToken",
    "MintedPause",
    "OperatedPlatformOnlyError",
    "PauseBinding",
    "PauseCheckpointNotFoundError",
    "PauseClaims",
    "PausePayloadStore",
    "PausePort",
    "PauseTokenError",
    "PauseTokenExpiredError",
    "PauseTokenReplayedError",
    "PauseTokenService",
    "PauseTokenUnauthorizedError",
    "PayloadBindingError",
    "PreToolStage",
    "ResponseValidationError",
    "ResumeCommand",
    "ResumeOutcome",
    "ResumePort",
    "RetirementHorizon",
    "RetirementHorizonError",
    "RunBindingError",
    "ScopeBinder",
    "ScopeBindingError",
    "SessionBindingError",
    "TTLPolicy",
    "TakenPause",
    "TokenConsumption",
    "TokenIssuanceLedger",
    "TokenLedgerError",
    "TokenTTLError",
    "ToolCall",
    "TurnCheckpoint",
    "TurnCheckpointStore",
    "TurnStateNotRecordedError",
    "UnissuedTokenError",
    "UnknownInteractionError",
    "ValidatedPause",
    "ask_user_registration",
    "call_id_of",
    "declared_durability",
    "hash_payload",
    "hash_payload_body",
    "hash_scope",
    "hash_scope_exactly",
    "human_interaction",
    "payload_body",
    "redemption_is_shared",
    "require_durable_consumption",
    "thread_id_for",
]
