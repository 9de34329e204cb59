"""Findings as messages on a topic, through Spark's Kafka sink. Key: the finding's ``id``; value: its columns as a JSON object.

A finding is sent when it is first found, and again only when its severity has risen. A finding of a window is sent after the
window has ended. Messages are written to an outbox before they are sent, so that the next run finishes an interrupted one:

    findings_sent/outbox/batch=N/   one file: id, severity, value, topic, cluster_id, and ``ends``, the end offsets of the
                                    topic's partitions before the batch was sent, as JSON
    findings_sent/done/             a row for each batch that is on its topic completely

For a batch that is not done, the next run reads the topic from ``ends`` on and sends the messages that are missing. Left out:
two concurrent jobs on one warehouse, and a task of a Spark cluster that fails half-way and is retried there. In both cases a
message may be on the topic twice, under the same key.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from odradek.pipeline.cluster import Cluster, require_reachable, source_options
from odradek.pipeline.errors import PipelineError, root_cause
from odradek.pipeline.findings.finding import HIGH, MEDIUM, Read, newest, read_findings
from odradek.pipeline.schema import local_rows, read_parquet

_OUTBOX = "findings_sent/outbox"
_DONE = "findings_sent/done"
_MESSAGE = "id string, severity string, value string, topic string, cluster_id string, ends string"
# Kinds that describe a window. Their figures change until the window has ended.
WINDOWED = ("rebalances", "lag", "backward_commits", "aborted_share", "poison_record")
_EARLIEST = -2


@dataclass(frozen=True, slots=True)
class FindingsTopic:
    """The topic to send to. ``kafka_config`` applies to producer, consumer and Admin client."""

    topic: str
    bootstrap_servers: str
    kafka_config: Mapping[str, str] = field(default_factory=dict)


def send_findings(spark: SparkSession, warehouse: str, read: Read, to: FindingsTopic) -> int:
    """Send the findings that have not been sent. Return the number of messages. Raises PipelineError."""
    require_reachable(to.bootstrap_servers)
    with Cluster(spark, to.bootstrap_servers, to.kafka_config) as cluster:
        outbox = _Outbox(spark, warehouse, to, cluster)
        return outbox.finish() + outbox.send(ready(spark, warehouse, read))


def ready(spark: SparkSession, warehouse: str, read: Read) -> DataFrame:
    """Return the findings that are final, given the present tables, as messages: id, severity, value."""
    found = read_findings(spark, warehouse).crossJoin(f.broadcast(newest(read)))
    is_over = ~f.col("kind").isin(*WINDOWED) | (f.col("to_time") <= f.col("newest"))
    head = f.to_json(f.struct("id", "kind", "severity", "subject", "from_time", "to_time"))
    value = f.concat(f.expr("substring(head, 1, length(head) - 1)"), f.lit(',"evidence":'), "evidence", f.lit("}"))
    return found.where(is_over).withColumn("head", head).select("id", "severity", value.alias("value"))


class _Outbox:
    """The messages sent, and being sent, to a topic."""

    def __init__(self, spark: SparkSession, warehouse: str, to: FindingsTopic, cluster: Cluster) -> None:
        self._spark, self._warehouse, self._to, self._cluster = spark, warehouse, to, cluster
        self._cluster_id = cluster.cluster_id()

    def finish(self) -> int:
        """Send the rest of a batch that an earlier run began. Return the number of messages."""
        done = self._read(_DONE, "batch long")
        open_batches = self._written().join(done, "batch", "left_anti")
        # A run leaves at most one open batch.
        begun = open_batches.groupBy("batch").agg(f.first("ends").alias("ends")).orderBy("batch").take(1)
        if not begun:
            return 0
        left = open_batches.join(self._arrived_since(json.loads(begun[0].ends)), ["id", "severity"], "left_anti")
        return self._send(left, begun[0].batch)

    def send(self, messages: DataFrame) -> int:
        """Send the messages that are new or have risen in severity, as a batch. Return their number."""
        sent = self._written().groupBy("id").agg(f.max(_gravity()).alias("gravity"))
        is_new = f.col("gravity").isNull() | (_gravity() > f.col("gravity"))
        new = messages.join(sent, "id", "left").where(is_new).select("id", "severity", "value")
        if new.isEmpty():
            return 0
        numbers = self._read(_OUTBOX, f"{_MESSAGE}, batch long").agg(f.max("batch").alias("last")).collect()
        batch = 0 if numbers[0].last is None else numbers[0].last + 1
        ends = {partition: end for _, partition, end in self._cluster.end_offsets([self._to.topic])}
        told = {"topic": self._to.topic, "cluster_id": self._cluster_id, "ends": json.dumps(ends)}
        written = new.withColumns({name: f.lit(value) for name, value in told.items()})
        written.coalesce(1).write.mode("overwrite").parquet(f"{self._warehouse}/{_OUTBOX}/batch={batch}")
        return self._send(self._written().where(f.col("batch") == batch), batch)

    def _send(self, messages: DataFrame, batch: int) -> int:
        settings = source_options(self._to.bootstrap_servers, self._to.kafka_config) | {"topic": self._to.topic}
        count = messages.count()
        try:
            messages.select(f.col("id").alias("key"), "value").write.format("kafka").options(**settings).save()
        except Exception as failure:
            reason = f"not all findings reached the topic {self._to.topic}; run this again to send the rest"
            raise PipelineError(f"{reason}: {root_cause(failure)}") from failure
        local_rows(self._spark, "batch long", [(batch,)]).write.mode("append").parquet(f"{self._warehouse}/{_DONE}")
        return count

    def _arrived_since(self, ends: dict[str, int]) -> DataFrame:
        """Return id and severity of the topic's messages from these offsets on."""
        topic = self._to.topic
        partitions = self._cluster.partitions([topic]).get(topic, [])
        if not partitions:
            return local_rows(self._spark, "id string, severity string")
        settings = source_options(self._to.bootstrap_servers, self._to.kafka_config) | {
            "assign": json.dumps({topic: partitions}),
            # A partition that is missing in ``ends`` is newer than the batch, and is read from its beginning.
            "startingOffsets": json.dumps({topic: {str(each): ends.get(str(each), _EARLIEST) for each in partitions}}),
            "failOnDataLoss": "false",
        }
        messages = self._spark.read.format("kafka").options(**settings).load()
        severity = f.get_json_object(f.col("value").cast("string"), "$.severity")
        return messages.select(f.col("key").cast("string").alias("id"), severity.alias("severity")).distinct()

    def _written(self) -> DataFrame:
        """Return the outbox of this topic, with batch numbers."""
        is_here = (f.col("topic") == self._to.topic) & (f.col("cluster_id") == self._cluster_id)
        return self._read(_OUTBOX, f"{_MESSAGE}, batch long").where(is_here)

    def _read(self, directory: str, schema: str) -> DataFrame:
        return read_parquet(self._spark, f"{self._warehouse}/{directory}", schema)


def _gravity() -> Column:
    return f.when(f.col("severity") == HIGH, 2).when(f.col("severity") == MEDIUM, 1).otherwise(0)
