"""Findings on a topic: each is there once, whatever run was cut short where, and again only where it has become graver."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from odradek.pipeline.errors import PipelineError, Unreachable
from odradek.pipeline.findings import sink
from odradek.pipeline.findings.finding import FINDING
from odradek.pipeline.findings.sink import FindingsTopic, send_findings
from odradek.pipeline.schema import local_rows
from odradek.pipeline.tables.schema import TABLES
from tests.spark.kafka import Kafka, Record

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TOPIC = "findings"


@pytest.fixture(scope="module")
def findings(spark_session, module_broker, tmp_path_factory):
    """What was found, by test; all send to one broker."""
    return Findings(spark_session, module_broker.address)


class Findings:
    def __init__(self, spark, address):
        self.spark, self.address = spark, address
        lag = TABLES["lag"]
        sampled = {"group": "g", "topic": "t", "partition": 0, "sampled_at": NOON}
        self._newest = local_rows(spark, lag, [tuple(map(sampled.get, lag.names))])

    def are(self, warehouse, **severities):
        """Of these ids, with these severities."""
        hour = timedelta(hours=1)
        rows = [(name, "kind", severity, "s", NOON - hour, NOON, '{"a":{"b":1}}') for name, severity in severities.items()]
        rows += [("over", "lag", "low", "s", NOON - hour, NOON, "{}"), ("not-over", "lag", "low", "s", NOON, NOON + hour, "{}")]
        local_rows(self.spark, FINDING, rows).write.mode("overwrite").parquet(f"{warehouse}/findings")

    def send(self, warehouse, topic):
        return send_findings(self.spark, warehouse, self._read, FindingsTopic(topic, self.address))

    def sent(self, topic):
        """(key, severity) of each message."""
        records = Kafka(self.address).records(topic)
        return sorted((record.key.decode(), json.loads(record.value)["severity"]) for record in records)

    def _read(self, name):
        return self._newest if name == "lag" else local_rows(self.spark, TABLES[name])


def test_a_finding_is_sent_once_a_graver_one_again_and_figures_when_their_window_is_over(findings, warehouse, new_name):
    topic = new_name()
    findings.are(warehouse, a="high", b="medium")
    assert findings.send(warehouse, topic) == 3
    values = [json.loads(record.value) for record in Kafka(findings.address).records(topic)]
    assert [value for value in values if value["id"] == "a"] == [
        {
            "id": "a",
            "kind": "kind",
            "severity": "high",
            "subject": "s",
            "from_time": "2026-03-01T11:00:00.000Z",
            "to_time": "2026-03-01T12:00:00.000Z",
            "evidence": {"a": {"b": 1}},
        }
    ]
    findings.are(warehouse, a="medium", b="high", c="low")
    assert findings.send(warehouse, topic) == 2
    assert findings.sent(topic) == [("a", "high"), ("b", "high"), ("b", "medium"), ("c", "low"), ("over", "low")]


def test_what_a_run_had_sent_when_it_was_cut_short_is_not_sent_again(findings, warehouse, new_name, monkeypatch):
    topic = new_name()
    findings.are(warehouse, a="high", b="high")
    with monkeypatch.context() as patch:
        patch.setattr(sink._Outbox, "_send", lambda *_arguments: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            findings.send(warehouse, topic)
    kafka = Kafka(findings.address)
    kafka.create_topic(topic, partitions=2)
    kafka.send(topic, [Record(b'{"severity":"high"}', b"a", partition=1)])
    findings.are(warehouse, a="high", b="high", c="low")
    assert findings.send(warehouse, topic) == 3
    shutil.rmtree(Path(warehouse, "findings_sent", "done"))
    assert findings.send(warehouse, topic) == 0
    assert findings.sent(topic) == [("a", "high"), ("b", "high"), ("c", "low"), ("over", "low")]


def test_a_topic_that_cannot_be_written_to_is_told(findings, warehouse):
    findings.are(warehouse, a="high")
    with pytest.raises(PipelineError, match="not all findings reached the topic no topic; run this again to send the rest"):
        findings.send(warehouse, "no topic")


def test_a_cluster_that_is_away_is_told(findings, warehouse):
    away = FindingsTopic(TOPIC, "127.0.0.1:1")
    with pytest.raises(Unreachable):
        send_findings(findings.spark, warehouse, findings._read, away)
