"""An agent of symfonic-core 9.12.0 pauses in this process with the capture hook around its stream, and is resumed."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from symfonic.agent.config import FrameworkConfig
from symfonic.agent.engine import SymfonicAgent
from symfonic.agent.types import FrameworkTenantScope, SymfonicAgentError
from symfonic.core.contracts.elicitation import AskUserAnswer, AskUserResponse
from symfonic.core.contracts.types import AskUserAnsweredEvent, AskUserQuestionEvent

from sinks.emit.capture import PauseCapture

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

OPTIONS = [{"label": label, "description": label} for label in ("Yes", "No")]
QUESTION = {"question": "Deploy it?", "header": "Deploy", "options": OPTIONS}
CALL = {"name": "ask_user", "args": {"request": {"questions": [QUESTION]}}, "id": "call-1", "type": "tool_call"}


class Scripted(BaseChatModel):
    """A model that says what is written."""

    script: Any = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_options: Any) -> "Scripted":
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=next(self.script))])


class Provider:
    """Hands out the one model."""

    def __init__(self) -> None:
        self._model = Scripted(script=iter([AIMessage("", tool_calls=[CALL]), AIMessage("Deployed.")]))

    def get_chat_model(self, config: Any) -> Scripted:
        return self._model


class Receiver(ThreadingHTTPServer):
    """Remembers what was posted."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: list[dict[str, Any]] = []


class Handler(BaseHTTPRequestHandler):
    """Answers 200 once the body was kept."""

    server: Receiver

    def do_POST(self) -> None:
        self.server.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # http.server's name
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def test_agents_pause_is_captured_before_it_is_shown_and_its_token_works_once(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JWT_SECRET", "a-secret-of-the-tests-of-at-least-thirty-two-bytes")
    agent = SymfonicAgent(
        Provider(), config=FrameworkConfig.with_defaults().model_copy(update={"ask_user_enabled": True})
    )
    scope = FrameworkTenantScope(tenant_id="acme")
    capture = PauseCapture(f"http://127.0.0.1:{receiver.server_port}/capture/prod", token="t")

    paused, held = None, -1
    async for event in capture.stream(agent.stream_typed("Ship it.", scope=scope, session_id="s-1", run_id="r-1")):
        if isinstance(event, AskUserQuestionEvent):
            paused, held = event, len(receiver.got)

    assert (paused is not None, held) == (True, 1)
    [got] = receiver.got
    assert (got["envelope"], got["resumable"]) == (paused.pause_token, False)
    assert (got["name"], got["session_id"], got["run_id"], got["call_id"]) == ("ask_user", "s-1", "r-1", "call-1")
    assert "Deploy it?" not in json.dumps(got)

    answer = AskUserAnswer(question_id=paused.request.questions[0].id, selections=["Yes"])
    response = AskUserResponse(answers=[answer])
    outcome = [event async for event in agent.resume(got["envelope"], response, scope=scope)]
    with pytest.raises(SymfonicAgentError) as replayed:
        [event async for event in agent.resume(got["envelope"], response, scope=scope)]

    assert any(isinstance(event, AskUserAnsweredEvent) for event in outcome)
    assert replayed.value.code == "gone"
