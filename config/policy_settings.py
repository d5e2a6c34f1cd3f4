"""How hard Handbell tries, how long it waits, and how long it keeps what is over."""

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator

from config.durations import Duration
from config.setting_tables import SettingsTable


class RetentionSettings(SettingsTable):
    """`[retention]`: how long what is over is kept. Open requests, and what waits for a person, are never deleted."""

    hints: Duration = Field(
        timedelta(days=7), ge=timedelta(hours=1), description="Processed hints; a repeat is recognised for this long."
    )
    settled: Duration = Field(
        timedelta(days=90),
        ge=timedelta(hours=1),
        description="Settled requests with their history, deliveries and attempts, counted from the settlement.",
    )
    sweeps: Duration = Field(timedelta(days=14), ge=timedelta(hours=1), description="Records of finished sweeps.")
    dead_entries: Duration = Field(
        timedelta(days=90), ge=timedelta(hours=1), description="Stream entries that could not be read."
    )
    audit: Duration = Field(
        timedelta(days=400), ge=timedelta(days=1), description="What people did through Handbell's doors."
    )


class DeliverySettings(SettingsTable):
    """`[delivery]`: how hard one message is tried."""

    attempt_limit: int = Field(
        100, ge=1, le=1000, description="Tries after which a message is a dead letter (a person can redrive it)."
    )
    age_limit: Duration = Field(
        timedelta(days=1),
        ge=timedelta(minutes=1),
        description="How long after it was due a message is still tried; then it is a dead letter.",
    )
    backoff_base: Duration = Field(
        timedelta(seconds=5), ge=timedelta(seconds=1), description="Wait after the first failure; doubles each time."
    )
    backoff_cap: Duration = Field(
        timedelta(minutes=30), ge=timedelta(seconds=1), description="The longest wait between two tries."
    )
    lease: Duration = Field(
        timedelta(minutes=1),
        ge=timedelta(seconds=5),
        le=timedelta(hours=1),
        description="How long a sender has a message to itself; after a crash another one takes over when it is past.",
    )
    dead_letter_limit: int = Field(
        100,
        ge=1,
        description="Dead letters a destination makes within one hour before it is paused until a redrive.",
    )

    @model_validator(mode="after")
    def _cap_is_not_below_base(self) -> Self:
        if self.backoff_cap < self.backoff_base:
            raise ValueError("backoff_cap is shorter than backoff_base")
        return self


class UnavailableSettings(SettingsTable):
    """`[unavailable]`: requests of which the runtime cannot say anything now."""

    notice_after: Duration = Field(
        timedelta(hours=1), ge=timedelta(minutes=1), description="The age at which the operator is told about one."
    )
