"""Raw records as a test writes them down, in a warehouse as ingest leaves it: micro-batches, each known to be whole."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from odradek.pipeline.schema import (
    CONSUMER_OFFSETS,
    END_OFFSETS,
    GROUP_METADATA,
    OFFSET_COMMIT,
    PARTITIONED_BY,
    RAW,
    SHARE_GROUP_STATE,
    TOPIC_IDS_DIR,
    TRANSACTION,
    TRANSACTION_STATE,
    local_rows,
)
from tests.pipeline.consumer_records import NAMES, ConsumerRecord

EPOCH = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 30_000


def at(seconds: float) -> datetime:
    """So many seconds after the test's history begins."""
    return EPOCH + timedelta(seconds=seconds)


def millis(seconds: float) -> int:
    return int(at(seconds).timestamp() * 1000)


def member(member_id: str, *partitions: int, topic: str = "orders", instance: str | None = None, client: str = "app") -> dict:
    return {
        "member_id": member_id,
        "group_instance_id": instance,
        "client_id": client,
        "client_host": f"/{client}.example",
        "rebalance_timeout": REBALANCE_TIMEOUT_MS,
        "session_timeout": SESSION_TIMEOUT_MS,
        "topics": [topic],
        "assignment": [{"topic": topic, "partitions": list(partitions)}] if partitions else [],
    }


class History:
    """Records in the order that they are told in, with the offsets that gives them, all of partition 0; and samples."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.samples: list[dict[str, Any]] = []
        self._offsets = {CONSUMER_OFFSETS: count(), TRANSACTION_STATE: count(), SHARE_GROUP_STATE: count()}

    def commit(self, group: str, offset: int | None, seconds: float, *, partition: int = 0, topic: str = "orders") -> None:
        """A committed offset; None deletes it."""
        key = {"group": group, "commit_topic": topic, "commit_partition": partition}
        value = {} if offset is None else {"committed_offset": offset, "leader_epoch": 3, "metadata": "m"}
        self._add(CONSUMER_OFFSETS, OFFSET_COMMIT, seconds, is_tombstone=offset is None, **key, **value)

    def generation(self, group: str, number: int, seconds: float, *members: dict, protocol: str = "range", **fields: Any) -> None:
        """A group's record."""
        value = {
            "protocol_type": "consumer" if number else "",
            "generation": number,
            "protocol": protocol if members else None,
            "leader": members[0]["member_id"] if members else None,
            "state_timestamp_ms": millis(seconds) - 250,
            "members": list(members),
        }
        self._add(CONSUMER_OFFSETS, GROUP_METADATA, seconds, group=group, is_tombstone=False, **value | fields)

    def no_group(self, group: str, seconds: float) -> None:
        """A group's deletion."""
        self._add(CONSUMER_OFFSETS, GROUP_METADATA, seconds, group=group, is_tombstone=True)

    def consumer(self, group: str, seconds: float, *records: ConsumerRecord, topic: str = CONSUMER_OFFSETS) -> None:
        """Records of a consumer or share group, of one batch."""
        for kind, is_tombstone, fields in records:
            told = json.dumps({**fields, "group_id": group})
            self._add(topic, kind, seconds, group=group, is_tombstone=is_tombstone, fields=told)

    def share(self, group: str, seconds: float, *records: ConsumerRecord) -> None:
        """Records of a group's share partitions, of one batch."""
        self.consumer(group, seconds, *records, topic=SHARE_GROUP_STATE)

    def transaction(
        self,
        transactional_id: str,
        status: str | None,
        seconds: float,
        *partitions: int,
        epoch: int = 0,
        start: float | None = None,
        version: int = 0,
        timeout_ms: int = 60_000,
    ) -> None:
        """A state of a transactional id; None forgets it."""
        value: dict[str, Any] = {}
        if status is not None:
            value = {
                "producer_id": 7,
                "producer_epoch": epoch,
                "timeout_ms": timeout_ms,
                "status": status,
                "partitions": [{"topic": "orders", "partition": each} for each in partitions],
                "last_update_ms": millis(seconds),
                "start_ms": -1 if start is None else millis(start),
                "client_transaction_version": version,
            }
        key = {"transactional_id": transactional_id, "is_tombstone": status is None}
        self._add(TRANSACTION_STATE, TRANSACTION, seconds, **key, **value)

    def sample(self, end_offset: int, seconds: float, *, partition: int = 0, topic: str = "orders") -> None:
        """Where a partition ended."""
        sample = {"topic": topic, "partition": partition, "end_offset": end_offset, "sampled_at": at(seconds)}
        self.samples.append(sample)

    def _add(self, topic: str, kind: str, seconds: float, **fields: Any) -> None:
        where = {"topic": topic, "partition": 0, "offset": next(self._offsets[topic]), "timestamp": at(seconds), "kind": kind}
        self.rows.append({**where, "date": at(seconds).date(), **fields})


def put_raw(
    spark: SparkSession, warehouse: str, batch: int, rows: Iterable[Mapping[str, Any]], *, whole: bool = True, files: int = 1
) -> None:
    """A micro-batch, as ingest writes it; ``whole`` says that it has come to its end. And the topics that have ids."""
    topic_ids = Path(warehouse, TOPIC_IDS_DIR, "known.parquet")
    topic_ids.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"topic": list(NAMES.values()), "topic_id": list(NAMES)}), topic_ids)
    frame = _frame(spark, RAW, [{**row, "batch": batch} for row in rows])
    frame = frame.coalesce(1) if files == 1 else frame.repartition(files)
    writer = frame.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(*PARTITIONED_BY)
    writer.parquet(f"{warehouse}/raw")
    if whole:
        commits = Path(warehouse, "checkpoints", "ingest", "commits")
        commits.mkdir(parents=True, exist_ok=True)
        (commits / str(batch)).write_text("v1\n{}")


def put_samples(spark: SparkSession, warehouse: str, samples: Iterable[Mapping[str, Any]]) -> None:
    """Ends of partitions."""
    frame = _frame(spark, END_OFFSETS, samples)
    frame.coalesce(1).write.mode("append").parquet(f"{warehouse}/end_offsets")


def _frame(spark: SparkSession, schema: StructType, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    return local_rows(spark, schema, [tuple(map(row.get, schema.names)) for row in rows])
