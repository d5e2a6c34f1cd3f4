"""One line an event, ours or a library's, redacted; a library's chatter stays out."""

import io
import json
import logging
import warnings
from typing import Any

import pytest
import structlog

from config.logs import LIBRARY_LOGGERS, configure_logs


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def objects(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_event_is_one_json_object_with_its_fields(stream: io.StringIO) -> None:
    configure_logs(form="json", stream=stream)

    structlog.get_logger("worker.delivery").info("delivery.sent", delivery_id=7, token="hunter2")

    [event] = objects(stream)
    assert event.pop("timestamp").endswith("Z")
    assert event == {
        "event": "delivery.sent",
        "delivery_id": 7,
        "token": "[redacted]",
        "level": "info",
        "logger": "worker.delivery",
    }


def test_librarys_warning_goes_the_same_way(stream: io.StringIO) -> None:
    configure_logs(form="json", stream=stream)

    logging.getLogger("arq.worker").warning("lost %s", "redis://:hunter2@h:1/0")

    [event] = objects(stream)
    assert (event["event"], event["level"], event["logger"]) == (
        "lost redis://[redacted]@h:1/0",
        "warning",
        "arq.worker",
    )


@pytest.mark.parametrize("name", ["arq.worker", "sqlalchemy.engine", *LIBRARY_LOGGERS])
def test_librarys_chatter_stays_out_even_at_debug(stream: io.StringIO, name: str) -> None:
    logging.getLogger(name).setLevel(logging.INFO if name in LIBRARY_LOGGERS else logging.NOTSET)
    configure_logs(form="json", level="debug", stream=stream)

    logging.getLogger(name).info("parameters: ('question text',)")
    logging.getLogger(name).debug("body: question text")

    # Python's own warnings (something of another test, collected just now) may stand beside it.
    assert [event for event in objects(stream) if event["logger"] == name] == []
    assert "question text" not in stream.getvalue()


def test_level_is_followed(stream: io.StringIO) -> None:
    configure_logs(form="json", level="warning", stream=stream)

    log = structlog.get_logger("sinks.consumer")
    log.info("hint.committed")
    log.warning("stream.gap")

    assert [event["event"] for event in objects(stream)] == ["stream.gap"]


def test_traceback_is_redacted_and_shows_no_local_variable(stream: io.StringIO) -> None:
    configure_logs(form="json", stream=stream)
    question = "local question text"

    try:
        raise OSError("postgresql://u:hunter2@db/x", len(question))
    except OSError:
        structlog.get_logger("worker").exception("delivery.unexpected")

    text = stream.getvalue()
    assert "Traceback" in text
    assert "hunter2" not in text
    assert "local question text" not in text.replace('question = "local question text"', "")


def test_console_form_is_one_line_an_event_without_colours(stream: io.StringIO) -> None:
    configure_logs(form="console", stream=stream)

    structlog.get_logger("worker").info("sweep.finished", namespace="a\nb", url="https://u:hunter2@h/x")

    [line] = stream.getvalue().splitlines()
    assert "sweep.finished" in line
    assert "\x1b" not in line
    assert "hunter2" not in line


def test_configuring_again_does_not_double_the_lines(stream: io.StringIO) -> None:
    log = structlog.get_logger("worker")
    configure_logs(form="json", stream=io.StringIO())
    log.info("before")
    configure_logs(form="json", stream=stream)

    log.info("once")

    assert [event["event"] for event in objects(stream)] == ["once"]


def test_python_warnings_are_logged(stream: io.StringIO) -> None:
    configure_logs(form="json", stream=stream)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("something will change", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)

    [event] = objects(stream)
    assert event["logger"] == "py.warnings"
    assert "something will change" in event["event"]
