"""Every status, word and reply of a provider has one outcome; Retry-After is never shortened."""

from datetime import UTC, datetime, timedelta

import aiosmtplib
import pytest

from worker.channels import slack_outcomes, webhook_outcomes
from worker.channels.http_outcomes import MAX_RETRY_AFTER, retry_after
from worker.channels.outcomes import FailureReason as Reason
from worker.channels.outcomes import Outcome, Permanent, Temporary, Unknown
from worker.channels.smtp_outcomes import Phase, outcome_of_error

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
WAIT = timedelta(seconds=7)


def webhook_expected(status: int) -> Outcome | None:
    if 200 <= status < 300:
        return None
    if status in (401, 403):
        return Permanent(Reason.UNAUTHORIZED)
    if status in (404, 410):
        return Permanent(Reason.DESTINATION_GONE)
    if status == 429:
        return Temporary(Reason.RATE_LIMITED, WAIT)
    if status in (408, 423, 425) or status >= 500:
        return Temporary(Reason.SERVER_ERROR, WAIT)
    return Permanent(Reason.REDIRECTED if status < 400 else Reason.REJECTED)


@pytest.mark.parametrize("status", range(200, 600))
def test_webhook_status_has_its_outcome(status: int) -> None:
    assert webhook_outcomes.outcome_of_status(status, WAIT) == webhook_expected(status)


def slack_expected(status: int) -> Outcome:
    if status in (502, 504):
        return Unknown(Reason.SERVER_ERROR)
    if status == 429:
        return Temporary(Reason.RATE_LIMITED, WAIT)
    if status == 408 or status >= 500:
        return Temporary(Reason.SERVER_ERROR, WAIT)
    if status in (401, 403):
        return Permanent(Reason.UNAUTHORIZED)
    if status in (404, 410):
        return Permanent(Reason.DESTINATION_GONE)
    if status < 300:
        return Unknown(Reason.BAD_ANSWER)
    return Permanent(Reason.REDIRECTED if status < 400 else Reason.REJECTED)


@pytest.mark.parametrize("status", range(200, 600))
def test_slack_status_has_its_outcome(status: int) -> None:
    assert slack_outcomes.outcome_of_status(status, WAIT) == slack_expected(status)
    assert slack_outcomes.outcome_of_answer(status, None, WAIT) == slack_expected(status)


def test_status_that_http_does_not_have_is_a_bad_answer() -> None:
    assert webhook_outcomes.outcome_of_status(700, None) == Temporary(Reason.BAD_ANSWER)
    assert slack_outcomes.outcome_of_status(700, None) == Unknown(Reason.BAD_ANSWER)


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        *((word, Permanent(reason)) for word, reason in slack_outcomes.PERMANENT_ERRORS.items()),
        *((word, Temporary(reason, WAIT)) for word, reason in slack_outcomes.TEMPORARY_ERRORS.items()),
        *((word, Unknown(reason)) for word, reason in slack_outcomes.UNKNOWN_ERRORS.items()),
        ("a_word_of_next_year", Temporary(Reason.BAD_ANSWER, WAIT)),
    ],
)
def test_slack_word_has_its_outcome(word: str, outcome: Outcome) -> None:
    assert slack_outcomes.outcome_of_answer(200, word, WAIT) == outcome


def test_slack_words_stand_in_one_table_each() -> None:
    tables = (slack_outcomes.PERMANENT_ERRORS, slack_outcomes.TEMPORARY_ERRORS, slack_outcomes.UNKNOWN_ERRORS)

    assert len({word for table in tables for word in table}) == sum(map(len, tables))
    assert slack_outcomes.PERMANENT_ERRORS["is_archived"] is Reason.DESTINATION_GONE
    assert slack_outcomes.PERMANENT_ERRORS["token_revoked"] is Reason.UNAUTHORIZED
    assert slack_outcomes.PERMANENT_ERRORS["message_not_found"] is Reason.TARGET_GONE


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("2", timedelta(seconds=2)),
        (" 120 ", timedelta(seconds=120)),
        ("0", timedelta(0)),
        ("1.2", timedelta(seconds=2)),
        ("Sat, 14 Mar 2026 09:31:00 GMT", timedelta(minutes=1)),
        ("Saturday, 14-Mar-26 09:31:00 GMT", timedelta(minutes=1)),
        ("Sat Mar 14 09:31:00 2026", timedelta(minutes=1)),
        ("Sat, 14 Mar 2026 09:29:00 GMT", timedelta(0)),
        ("9" * 60, MAX_RETRY_AFTER),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_RETRY_AFTER),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("٣", None),
        ("9" * 400, MAX_RETRY_AFTER),
    ],
)
def test_retry_after_is_read_in_both_forms(value: str, wait: timedelta | None) -> None:
    assert retry_after({"retry-AFTER": value}, NOW) == wait


def test_retry_after_is_not_shortened_by_a_clock_that_runs_ahead() -> None:
    headers = {"Retry-After": "Sat, 14 Mar 2026 09:31:00 GMT", "Date": "Sat, 14 Mar 2026 09:29:00 GMT"}

    assert retry_after(headers, NOW) == timedelta(minutes=2)
    assert retry_after({}, NOW) is None


def smtp_expected(code: int, phase: Phase, refusal: Reason) -> Outcome:
    if 400 <= code < 500:
        return Temporary(Reason.SERVER_ERROR)
    if 500 <= code < 600:
        return Permanent(Reason.UNAUTHORIZED if code in (530, 534, 535, 538) else refusal)
    return Unknown(Reason.BAD_ANSWER) if phase is Phase.DATA else Temporary(Reason.BAD_ANSWER)


@pytest.mark.parametrize("code", [-1, 0, 199, 250, 354, *range(400, 600)])
def test_smtp_reply_has_its_outcome(code: int) -> None:
    cases = (
        (aiosmtplib.SMTPSenderRefused(code, "s", "a"), Phase.ENVELOPE, Reason.REJECTED),
        (aiosmtplib.SMTPConnectResponseError(code, "s"), Phase.ENVELOPE, Reason.REJECTED),
        (aiosmtplib.SMTPHeloError(code, "s"), Phase.ENVELOPE, Reason.REJECTED),
        (aiosmtplib.SMTPRecipientRefused(code, "s", "a"), Phase.ENVELOPE, Reason.RECIPIENT_REFUSED),
        (aiosmtplib.SMTPAuthenticationError(code, "s"), Phase.ENVELOPE, Reason.UNAUTHORIZED),
        (aiosmtplib.SMTPDataError(code, "s"), Phase.DATA, Reason.REJECTED),
    )
    for error, phase, refusal in cases:
        assert outcome_of_error(error, phase) == smtp_expected(code, phase, refusal), error


@pytest.mark.parametrize(
    ("error", "in_envelope", "in_data"),
    [
        (
            aiosmtplib.SMTPServerDisconnected("x"),
            Temporary(Reason.CONNECTION_LOST),
            Unknown(Reason.CONNECTION_LOST),
        ),
        (aiosmtplib.SMTPReadTimeoutError("x"), Temporary(Reason.TIMED_OUT), Unknown(Reason.TIMED_OUT)),
        (aiosmtplib.SMTPConnectError("x"), Temporary(Reason.UNREACHABLE), Unknown(Reason.CONNECTION_LOST)),
        (aiosmtplib.SMTPConnectTimeoutError("x"), Temporary(Reason.UNREACHABLE), Unknown(Reason.TIMED_OUT)),
        (aiosmtplib.SMTPException("no STARTTLS"), Permanent(Reason.UNREACHABLE), Unknown(Reason.CONNECTION_LOST)),
        (TimeoutError(), Temporary(Reason.TIMED_OUT), Unknown(Reason.TIMED_OUT)),
        (ConnectionResetError(), Temporary(Reason.CONNECTION_LOST), Unknown(Reason.CONNECTION_LOST)),
        (OSError("TLS"), Temporary(Reason.UNREACHABLE), Unknown(Reason.CONNECTION_LOST)),
    ],
)
def test_smtp_silence_is_unknown_only_once_the_mail_was_handed_over(
    error: Exception, in_envelope: Outcome, in_data: Outcome
) -> None:
    assert outcome_of_error(error, Phase.ENVELOPE) == in_envelope
    assert outcome_of_error(error, Phase.DATA) == in_data
