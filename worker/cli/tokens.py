"""`handbell tokens`: what is outstanding, taking tokens back, rotating the keys, ending the retired format."""

import argparse
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from worker.cli.arguments import actor, add_config, add_json, duration, load, print_json, print_table

if TYPE_CHECKING:
    from config.loading import Configuration
    from reconciler.pause_store.reader import Outstanding
    from worker.cli.token_ledger import Ledger

_COLUMNS = ("jti", "name", "namespace", "attention_id", "key_id", "issued_at", "expires_at", "legacy_pinned")
_Run = Callable[[argparse.Namespace], Coroutine[Any, Any, int]]


def add_to(commands: Any) -> None:
    """Add the command and its five actions."""
    tokens = commands.add_parser("tokens", help="pause and answer tokens: outstanding, revoked, retired; their keys")
    actions = tokens.add_subparsers(metavar="ACTION", required=True)
    _action(actions, "outstanding", "every token that is issued, unspent, unexpired and not revoked", _outstanding)
    revoke = _action(actions, "revoke", "take a token back, or every live token of a key (recorded)", _revoke)
    which = revoke.add_mutually_exclusive_group(required=True)
    which.add_argument("jti", nargs="?", metavar="JTI", help="the token's id")
    which.add_argument("--key", metavar="KID", help="every live token that this key signed")
    rotate = _action(actions, "rotate", "take the next step of the keys' rotation (recorded)", _rotate, ledger=False)
    rotate.add_argument("--drop", metavar="KID", help="a compromised key: take it out, and revoke its tokens")
    proof = _action(actions, "drain-proof", "whether tokens of the retired format are over (exit 3: not yet)", _proof)
    horizon = _action(actions, "horizon", "from when on the retired format is not issued; recorded once", _horizon)
    horizon.add_argument("at", nargs="?", metavar="INSTANT", help="RFC 3339; left out: show the one that stands")
    horizon.add_argument("--because", default="", metavar="TEXT", help="why, for those who read it later")
    for parser in (proof, rotate):
        parser.add_argument(
            "--longest",
            type=duration,
            default=timedelta(days=1),
            metavar="DURATION",
            help="the longest lifetime of a token (default: 1d)",
        )


def _action(actions: Any, name: str, text: str, run: _Run, *, ledger: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text)
    add_config(parser)
    add_json(parser)
    if ledger:
        parser.add_argument(
            "--ledger", metavar="URL", help="a runtime's ledger in Handbell's tables (default: Handbell's own database)"
        )
    parser.set_defaults(run=run)
    return parser


@asynccontextmanager
async def _ledger(arguments: argparse.Namespace) -> AsyncIterator["Ledger"]:
    from worker.cli.token_ledger import open_ledger

    longest: timedelta = getattr(arguments, "longest", timedelta(days=1))
    async with open_ledger(load(arguments), arguments.ledger, longest=longest) as ledger:
        yield ledger


async def _outstanding(arguments: argparse.Namespace) -> int:
    async with _ledger(arguments) as ledger:
        if arguments.json:
            async for token in ledger.outstanding():
                print_json(_shown(token))
        else:
            print_table([_shown(token) async for token in ledger.outstanding()], _COLUMNS)
    return 0


async def _revoke(arguments: argparse.Namespace) -> int:
    from worker.cli.main import DONE, WRONG

    async with _ledger(arguments) as ledger:
        revoked = await ledger.revoke(jti=arguments.jti, kid=arguments.key, actor=actor())
    _say(arguments, {"revoked": revoked}, f"{revoked} revoked")
    return DONE if revoked or arguments.key else WRONG


async def _rotate(arguments: argparse.Namespace) -> int:
    from worker.answers.opening import keyset_path
    from worker.answers.rotation import Step, drop_key, rotate
    from worker.cli.main import DONE, INCOMPLETE
    from worker.cli.token_ledger import open_ledger

    configuration: Configuration = load(arguments)
    path = keyset_path(configuration)
    async with open_ledger(configuration, None, longest=arguments.longest) as ledger:
        if arguments.drop:
            drop_key(path, arguments.drop)
            revoked = await ledger.revoke(jti=None, kid=arguments.drop, actor=actor())
            await ledger.record(actor(), "tokens.rotate", arguments.drop, "dropped")
            said = {"step": "dropped", "kid": arguments.drop, "revoked": revoked}
            _say(arguments, said, f"{arguments.drop} dropped, {revoked} tokens revoked")
            return DONE
        done = rotate(path, now=datetime.now(UTC), maximum_ttl=arguments.longest)
        if done.step is not Step.WAITING:
            await ledger.record(actor(), "tokens.rotate", done.kid, done.step.value)
    wait = f"; run it again in {done.wait_seconds:.0f} s" if done.wait_seconds else ""
    _say(arguments, asdict(done), f"{done.kid} {done.step.value}, {done.active} signs{wait}")
    return INCOMPLETE if done.wait_seconds else DONE


async def _proof(arguments: argparse.Namespace) -> int:
    from worker.cli.main import DONE, INCOMPLETE

    async with _ledger(arguments) as ledger:
        proof = await ledger.drain_proof()
    said = {
        "drained": proof.drained,
        "reason": proof.reason,
        "scope": proof.scope.value,
        "outstanding": list(proof.outstanding),
        "horizon": _instant(proof.horizon.at) if proof.horizon else None,
        "deadline": _instant(proof.deadline),
    }
    _say(arguments, said, f"{'drained' if proof.drained else 'not drained'}: {proof.reason}")
    return DONE if proof.drained else INCOMPLETE


async def _horizon(arguments: argparse.Namespace) -> int:
    async with _ledger(arguments) as ledger:
        if arguments.at is None:
            horizon = (await ledger.drain_proof()).horizon
        else:
            horizon = await ledger.record_horizon(_parsed(arguments.at), arguments.because, actor=actor())
    said = None if horizon is None else {"at": _instant(horizon.at), "reason": horizon.reason}
    _say(arguments, {"horizon": said}, f"from {said['at']} on: {said['reason']}" if said else "no horizon is recorded")
    return 0


def _say(arguments: argparse.Namespace, value: dict[str, Any], line: str) -> None:
    if arguments.json:
        print_json(value)
    else:
        print(line)


def _shown(token: "Outstanding") -> dict[str, Any]:
    return asdict(token) | {"issued_at": _instant(token.issued_at), "expires_at": _instant(token.expires_at)}


def _instant(epoch_seconds: float | None) -> str | None:
    return None if epoch_seconds is None else datetime.fromtimestamp(epoch_seconds, tz=UTC).isoformat()


def _parsed(text: str) -> datetime:
    from config.errors import SettingsError

    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(f"{text!r} is no instant: write it like 2026-12-01T00:00:00Z") from None
    if at.tzinfo is None:
        raise SettingsError(f"{text!r} has no zone: write it like 2026-12-01T00:00:00Z")
    return at
