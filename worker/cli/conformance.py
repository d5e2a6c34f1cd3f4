"""`handbell handoff-check URL --i-own-this`: tries out a receiver of the handoff and says what is right and wrong."""

import argparse
import os
from pathlib import Path
from typing import Any

from config.errors import DependencyError, SettingsError

_TOKEN_VARIABLE = "CAYU_ATTENTION_HANDOFF_TOKEN"  # noqa: S105  # the variable that Cayu itself reads


def add_to(commands: Any) -> None:
    """Add the command."""
    text = "play what senders do, right and wrong, against a receiver of cayu.human-attention-handoff/v1"
    parser = commands.add_parser("handoff-check", help=text, description=text)
    parser.add_argument("url", metavar="URL", help="the receiver's base URL, best of a namespace of its own")
    parser.add_argument(
        "--i-own-this", action="store_true", help="yes: requests will be opened there and settled, people may be told"
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help=f"the token (else {_TOKEN_VARIABLE})")
    parser.add_argument("--second-token-file", type=Path, metavar="FILE", help="another valid token, to try a rotation")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    import aiohttp

    from worker.cli.main import DONE, FAILED
    from worker.conformance.handoff import try_out
    from worker.conformance.sender import Sender, Wrong

    if not arguments.i_own_this:
        raise SettingsError(f"{arguments.url}: say --i-own-this if requests may be opened and settled there")
    if not arguments.url.startswith(("https://", "http://")):
        raise SettingsError("URL must begin with https:// or http://")
    token = _read(arguments.token_file) if arguments.token_file else os.environ.get(_TOKEN_VARIABLE, "").strip()
    if not token:
        raise SettingsError(f"no token: set {_TOKEN_VARIABLE} or give --token-file")
    second = _read(arguments.second_token_file) if arguments.second_token_file else None
    async with aiohttp.ClientSession() as http:
        try:
            await Sender(http, arguments.url, token).call("GET", "state")
        except Wrong as error:
            raise DependencyError(f"{arguments.url} {error}: is a receiver there?") from None
        verdicts = await try_out(http, arguments.url, token, second_token=second)
    for verdict in verdicts:
        if verdict.is_skipped:
            print(f"--     {verdict.name}: not tried")
        else:
            print(f"ok     {verdict.name}" if verdict.wrong is None else f"WRONG  {verdict.name}: it {verdict.wrong}")
    wrong = sum(verdict.wrong is not None for verdict in verdicts)
    print(f"{len(verdicts)} checks, {wrong} wrong")
    return FAILED if wrong else DONE


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read ({type(error).__name__})") from None
