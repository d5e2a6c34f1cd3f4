"""The dashboard and the alert rules speak of the metrics that there are, and leave none out."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import Counter
from prometheus_client.registry import Collector

from worker.metrics import GAUGES, Metrics

DEPLOY = Path(__file__).parents[3] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "handbell.json").read_text())
RULES = (DEPLOY / "prometheus" / "handbell.rules.yml").read_text()
SELECTED = re.compile(r"(handbell_[a-z_]+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
WORD = re.compile(r"[a-z_]+(?==|!|~)")


def known() -> dict[str, set[str]]:
    """Return every series that a scrape can show, with its labels."""
    series = {gauge.name: set(gauge.labels) for gauge in GAUGES}
    for collector in own_metrics():
        labels = set(collector._labelnames)  # the client has no public name for them
        for family in collector.describe():
            if isinstance(collector, Counter):
                series[f"{family.name}_total"] = labels
            else:
                series |= {f"{family.name}{end}": labels | {"le"} for end in ("_bucket", "_count", "_sum")}
    return series


def own_metrics() -> Iterable[Any]:
    collectors: Iterable[Collector] = Metrics().registry._collector_to_names
    return collectors


def queries() -> list[str]:
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    rules = re.findall(r"expr: (?:>-\n)?((?:.(?!for:))+?)\n\s+for:", RULES, re.DOTALL)
    return panels + rules


def test_every_query_names_a_metric_and_labels_that_exist() -> None:
    series = known()

    for query in queries():
        named = SELECTED.findall(query)
        assert named, query
        labels: set[str] = set()
        for name, selection in named:
            assert name in series, f"{name} is not in worker/metrics.py: {query}"
            labels |= series[name]
            assert set(WORD.findall(selection)) <= series[name], query
        grouped = {word.strip() for group in GROUPED.findall(query) for word in group.split(",")}
        assert grouped <= labels, query


def test_every_rule_was_read() -> None:
    assert len(queries()) - sum(len(panel["targets"]) for panel in DASHBOARD["panels"]) == RULES.count("- alert:")


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])

    for gauge in GAUGES:
        assert gauge.name in shown
    for collector in own_metrics():
        assert all(family.name in shown for family in collector.describe())


def test_no_label_can_hold_an_identity() -> None:
    allowed = {"state", "status", "reason", "outcome", "mode", "channel", "call", "le"}

    assert set().union(*known().values()) <= allowed
