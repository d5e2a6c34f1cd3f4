"""What `handbell run` says once it is ready: what it uses, and how an agent is connected to it."""

import sys
from typing import TYPE_CHECKING

from config.database_errors import database_place
from worker.web.tokens import capture_line, export_lines

if TYPE_CHECKING:
    from worker.roles import Running


def print_how_to_connect(running: "Running") -> None:
    """Print it on stdout; a Redis URL is shown only where it is the embedded server's socket (no password in it)."""
    core = running.core
    sources = ", ".join(f"{entry.namespace} ({entry.type})" for entry in core.book.entries) or "none yet"
    lines = [
        f"database      {database_place(core.engine.url)}",
        f"redis         {_redis(running)}",
        f"sources       {sources}",
        f"destinations  {', '.join(core.destinations)}",
    ]
    if running.public is not None:
        lines.append(f"web           {running.public.server.url}")
    lines.append(f"admin         {running.admin.url}")
    lines += _handoffs(running)
    if not core.book.entries:
        lines += _first_steps(running)
    print("\n".join(lines), file=sys.stdout, flush=True)


def _handoffs(running: "Running") -> list[str]:
    """Return the two lines that connect an agent to each handoff source whose token was made here."""
    if running.public is None:
        return []
    url = running.core.settings.web.public_url or running.public.server.url
    lines: list[str] = []
    for connection in running.public.connections:
        if connection.token is not None:
            lines += ["", f"To connect a Cayu agent to {connection.namespace}, give it these two variables:"]
            lines += export_lines(url, connection.namespace, connection.token)
    for connection in running.public.captures:
        if connection.token is not None:
            lines += ["", f"To capture the pauses of {connection.namespace}, in the agent's process:"]
            lines += [
                "from handbell_emit.capture import PauseCapture",
                capture_line(url, connection.namespace, connection.token),
            ]
    return lines


def _redis(running: "Running") -> str:
    if not running.redis.is_embedded:
        return "as configured"
    return f"embedded, {_agent_url(running)}"


def _agent_url(running: "Running") -> str:
    url = running.redis.url
    return url if url.startswith("unix://") else "on a loopback port (its path is too long for a socket)"


def _first_steps(running: "Running") -> list[str]:
    return [
        "",
        "No source is configured yet: hints are kept, nobody is told. To connect a Cayu agent,",
        "1. give its app the sink:   from handbell_emit import RedisStreamSink",
        f'                            CayuApp(..., event_sinks=[RedisStreamSink("{_agent_url(running)}", '
        'namespace="prod")])',
        "2. name its store in handbell.toml and start again:",
        "                            [[sources]]",
        '                            namespace = "prod"',
        '                            type = "cayu"',
        '                            store = "sqlite:////path/to/the/agent/cayu.db"',
    ]
