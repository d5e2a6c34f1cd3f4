"""The signer vouches for exactly what a key of ours signed, as it stands, and for nothing else."""

import base64
import hashlib
import hmac
import json
import string
from dataclasses import replace
from datetime import timedelta
from typing import Any

import jwt
import pytest

from reconciler.pauses import InMemoryConsumption, PauseTokenService, PauseTokenUnauthorizedError
from tests.contract.pause_tokens.keyset_kit import OTHER_SECRET, SECRET, Keys
from tests.contract.pause_tokens.kit import Rig, Scope, claims
from tests.contract.pause_tokens.store_kit import clock_at
from worker.answers.errors import KeysetUnavailableError, TokenRefusedError, TokenTooLongError
from worker.answers.keyset import Keyset, SigningKey, activate, drop, prepare
from worker.answers.signer import MAX_TOKEN_CHARS, JwsSigner, SignedEnvelope, open_token

SCHEMA = "handbell.pause/v1"
PAYLOAD = claims().encode()
DAY = timedelta(days=1)


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def by_hand(header: dict[str, Any], payload: bytes = PAYLOAD, secret: bytes = SECRET) -> str:
    """Sign as nobody's library would: any header at all."""
    return by_hand_text(json.dumps(header, separators=(",", ":")), payload, secret)


def by_hand_text(header: str, payload: bytes = PAYLOAD, secret: bytes = SECRET) -> str:
    signing_input = f"{b64(header.encode())}.{b64(payload)}"
    return f"{signing_input}.{b64(hmac.digest(secret, signing_input.encode(), hashlib.sha256))}"


def signed(keys: Keys | None = None) -> tuple[JwsSigner, SignedEnvelope]:
    signer = JwsSigner(keys or Keys(), clock_at())
    return signer, signer.mint(pin=None, payload=PAYLOAD, schema_id=SCHEMA)


def test_what_was_signed_is_vouched_for_with_its_key() -> None:
    signer, envelope = signed()

    assert signer.verify(open_token(envelope.token), pinless_policy=None, schema_id=SCHEMA).kid == "k1"
    assert open_token(envelope.token) == envelope
    assert jwt.get_unverified_header(envelope.token) == {"alg": "HS256", "kid": "k1", "typ": SCHEMA}
    assert envelope.payload == PAYLOAD
    assert "eyJ" not in repr(envelope)


GOOD = {"alg": "HS256", "kid": "k1", "typ": SCHEMA}
COMPACT = json.dumps(GOOD, separators=(",", ":"))
BAD_HEADERS: dict[str, dict[str, Any]] = {
    "alg none": GOOD | {"alg": "none"},
    "alg None": GOOD | {"alg": None},
    "another alg": GOOD | {"alg": "HS512"},
    "no alg": {"kid": "k1", "typ": SCHEMA},
    "schema swapped": GOOD | {"typ": "attn-answer+jws"},
    "no schema": {"alg": "HS256", "kid": "k1"},
    "unknown kid": GOOD | {"kid": "k9"},
    "no kid": {"alg": "HS256", "typ": SCHEMA},
    "kid of another type": GOOD | {"kid": 1},
    "jwk": GOOD | {"jwk": {"kty": "oct", "k": b64(SECRET)}},
    "jku": GOOD | {"jku": "https://example.com/keys"},
    "x5u": GOOD | {"x5u": "https://example.com/cert"},
    "crit": GOOD | {"crit": ["exp"], "exp": 1},
    "b64": GOOD | {"b64": False, "crit": ["b64"]},
}


@pytest.mark.statement("S8", "S64")
@pytest.mark.parametrize("header", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_header_that_is_not_ours_is_refused_even_when_it_is_signed(header: dict[str, Any]) -> None:
    signer, _ = signed()
    token = by_hand(header)

    with pytest.raises(TokenRefusedError):
        signer.verify(open_token(token), schema_id=SCHEMA)
    with pytest.raises(TokenRefusedError):
        signer.verify(SignedEnvelope(token, PAYLOAD, SCHEMA, "k1"), schema_id=SCHEMA)


def test_the_same_header_by_hand_would_have_been_vouched_for() -> None:
    signer, _ = signed()

    assert signer.verify(open_token(by_hand(GOOD)), schema_id=SCHEMA).kid == "k1"


@pytest.mark.statement("S8")
@pytest.mark.parametrize(
    "header",
    [
        json.dumps(GOOD),
        json.dumps(dict(reversed(GOOD.items())), separators=(",", ":")),
        COMPACT.replace('"kid":"k1"', '"kid":"k9","kid":"k1"'),
        COMPACT.replace("k1", "\\u006b1"),
    ],
    ids=["spaces", "another order", "a key twice", "an escape"],
)
def test_the_same_header_in_another_spelling_is_refused_even_when_it_is_signed(header: str) -> None:
    signer, _ = signed()

    with pytest.raises(TokenRefusedError):
        signer.verify(open_token(by_hand_text(header)), schema_id=SCHEMA)


@pytest.mark.statement("S8")
def test_an_unsigned_token_is_refused() -> None:
    signer, envelope = signed()
    header, payload, _ = envelope.token.split(".")

    for token in (f"{header}.{payload}.", jwt.PyJWS().encode(PAYLOAD, "", algorithm="none", headers={"kid": "k1"})):
        with pytest.raises(TokenRefusedError):
            signer.verify(open_token(token), schema_id=SCHEMA)


@pytest.mark.statement("S8")
def test_another_keys_signature_is_refused_under_either_id() -> None:
    keys = Keys(Keyset("k1", {"k1": SigningKey(SECRET), "k2": SigningKey(OTHER_SECRET)}))
    signer, _ = signed(keys)

    for kid, secret in (("k1", OTHER_SECRET), ("k2", SECRET), ("k1", b"3" * 32)):
        with pytest.raises(TokenRefusedError):
            signer.verify(open_token(by_hand(GOOD | {"kid": kid}, secret=secret)), schema_id=SCHEMA)


@pytest.mark.statement("S8")
def test_every_other_spelling_of_a_token_is_refused() -> None:
    """Base64 has several last characters for the same bytes; a token has one spelling."""
    signer, envelope = signed()
    alphabet = string.ascii_letters + string.digits + "-_"
    others = [envelope.token[:-1] + last for last in alphabet if last != envelope.token[-1]]
    others += [envelope.token + tail for tail in ("=", "==", "\n", " ", ".", "A")]
    others += [" " + envelope.token, envelope.token.replace(".", "=.", 1), envelope.token.replace("_", "/")[:-1] + "+"]

    for other in others:
        with pytest.raises(TokenRefusedError):
            signer.verify(open_token(other), schema_id=SCHEMA)
        with pytest.raises(TokenRefusedError):
            signer.verify(replace(envelope, token=other), schema_id=SCHEMA)


@pytest.mark.statement("S64")
def test_an_envelope_that_says_something_else_than_its_token_is_refused() -> None:
    signer, envelope = signed()

    for changes in ({"payload": b"{}"}, {"schema_id": "another"}, {"kid": "k9"}):
        with pytest.raises(TokenRefusedError):
            signer.verify(replace(envelope, **changes), schema_id=SCHEMA)
    with pytest.raises(TokenRefusedError):
        signer.verify(envelope, schema_id="another")
    with pytest.raises(TokenRefusedError):
        signer.verify("token", schema_id=SCHEMA)


NO_TOKENS: list[Any] = ["", ".", "..", "a.b.c", "é.é.é", "\ud800", None, b"a.b.c", "x" * (MAX_TOKEN_CHARS + 1)]


@pytest.mark.parametrize("token", [*NO_TOKENS, f"{b64(b'[' * 2000)}.e30.e30", f"{b64(b'[]')}.e30.e30"], ids=range(11))
def test_what_is_no_token_is_refused_without_being_quoted(token: Any) -> None:
    with pytest.raises(TokenRefusedError) as caught:
        open_token(token)
    assert len(str(caught.value)) < 40
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_token_that_could_not_be_read_is_not_made() -> None:
    with pytest.raises(TokenTooLongError):
        JwsSigner(Keys(), clock_at()).mint(pin=None, payload=b"x" * 4000, schema_id=SCHEMA)


def test_rotation_overlaps() -> None:
    keys = Keys()
    signer, old = signed(keys)

    keys.keyset = prepare(keys.keyset, "k2", OTHER_SECRET)
    assert signer.mint(pin=None, payload=PAYLOAD, schema_id=SCHEMA).kid == "k1"
    keys.keyset = activate(keys.keyset, "k2", now=clock_at().now(), maximum_ttl=DAY)
    new = signer.mint(pin=None, payload=PAYLOAD, schema_id=SCHEMA)

    assert (new.kid, signer.verify(old, schema_id=SCHEMA).kid, signer.verify(new, schema_id=SCHEMA).kid) == (
        "k2",
        "k1",
        "k2",
    )


async def test_a_former_key_verifies_through_the_longest_lifetime_and_no_longer() -> None:
    clock, keys = clock_at(), Keys()
    signer = JwsSigner(keys, clock)
    old = signer.mint(pin=None, payload=PAYLOAD, schema_id=SCHEMA)
    keys.keyset = activate(prepare(keys.keyset, "k2", OTHER_SECRET), "k2", now=clock.now(), maximum_ttl=DAY)

    await clock.advance(DAY)
    assert signer.verify(old, schema_id=SCHEMA).kid == "k1"
    await clock.advance(timedelta(microseconds=1))
    with pytest.raises(TokenRefusedError):
        signer.verify(old, schema_id=SCHEMA)


def test_a_dropped_keys_tokens_are_refused_at_once() -> None:
    keys = Keys()
    signer, old = signed(keys)
    rotated = activate(prepare(keys.keyset, "k2", OTHER_SECRET), "k2", now=clock_at().now(), maximum_ttl=DAY)
    keys.keyset = drop(rotated, "k1")

    with pytest.raises(TokenRefusedError):
        signer.verify(old, schema_id=SCHEMA)


def test_an_unknown_key_id_is_looked_for_once_more() -> None:
    keys = Keys()
    keys.next = prepare(keys.keyset, "k2", OTHER_SECRET)
    signer, _ = signed(keys)

    assert signer.verify(open_token(by_hand(GOOD | {"kid": "k2"}, secret=OTHER_SECRET)), schema_id=SCHEMA).kid == "k2"
    assert keys.refreshes == 1


@pytest.mark.statement("S9")
async def test_keys_out_of_reach_are_told_apart_and_the_token_is_good_again_after() -> None:
    rig, keys = Rig(), Keys()
    service = PauseTokenService(JwsSigner(keys, clock_at()), consumption=InMemoryConsumption(), clock=rig.clock)
    minted = await service.mint(rig.binding(thread_id="t", checkpoint_id="c"), request_body="{}")
    keys.is_down = True

    with pytest.raises(PauseTokenUnauthorizedError) as caught:
        await service.validate_and_consume(open_token(minted.envelope.token), scope=Scope())
    assert caught.value.code == "keyset_unavailable"
    with pytest.raises(KeysetUnavailableError):
        await service.mint(rig.binding(thread_id="t", checkpoint_id="c"), request_body="{}")
    keys.is_down = False
    validated = await service.validate_and_consume(open_token(minted.envelope.token), scope=Scope())
    assert validated.claims == minted.claims


@pytest.mark.statement("S2", "S103")
async def test_the_signer_serves_the_capability(rig: Rig) -> None:
    service = PauseTokenService(JwsSigner(Keys(), clock_at()), consumption=InMemoryConsumption(), clock=rig.clock)
    minted = await service.mint(rig.binding(thread_id="t", checkpoint_id="c"), request_body="{}")

    validated = service.validate(open_token(minted.envelope.token), scope=Scope(), session_id="s-1", run_id="r-1")

    assert validated.claims == minted.claims
    assert validated.pin.kid == "k1"
