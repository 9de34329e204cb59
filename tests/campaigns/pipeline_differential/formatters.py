"""The coordinators' topics, as printed by Kafka's own message formatters and as decoded by ingest.

Kafka's ConsoleConsumer prints each record of a topic as JSON, without its coordinates. All records of a key are in one
partition, so they are printed in order. The comparison is therefore key by key, record after record.
"""

import json
import re
import subprocess
from base64 import b64decode
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from kafka.protocol.consumer import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from pyspark.sql import DataFrame, SparkSession

from benchmarks import kafka_jars
from odradek.pipeline.schema import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE, read_raw

READER = "reader-of-formatted-records"
_TIMEOUT_S = 180
# The consumer ends when it has waited so long for a record. Where it has seen none at all, it had too little of the processor.
_IDLE_MS, _LONG_IDLE_MS = 5_000, 60_000

Records = dict[tuple, list[Any]]


@dataclass(frozen=True, slots=True)
class Formatter:
    """A formatter of Kafka's: its topic, its kinds of records, and how to bring both sides to one form."""

    name: str
    topic: str
    kinds: str
    printed: Callable[[dict[str, Any], dict[str, Any] | None], tuple[tuple, Any]]
    decoded: Callable[[Any], tuple[tuple, Any]]


def print_records(formatter: Formatter, address: str) -> Records:
    """The formatter's output for the whole topic, by key."""
    records: Records = defaultdict(list)
    for record in _objects(_printed(formatter, address, _IDLE_MS) or _printed(formatter, address, _LONG_IDLE_MS)):
        value = record["value"] and record["value"]["data"]
        key, said = formatter.printed({"type": record["key"]["type"], **record["key"]["data"]}, value)
        if not key[0].startswith(READER):
            records[key].append(said)
    return dict(records)


def _printed(formatter: Formatter, address: str, idle_ms: int) -> str:
    command = [
        *(kafka_jars.java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"),
        *("-cp", f"{kafka_jars.libraries()}/*", "org.apache.kafka.tools.consumer.ConsoleConsumer"),
        *("--bootstrap-server", address, "--topic", formatter.topic, "--from-beginning"),
        *("--group", f"{READER}-{formatter.name}"),
        *("--formatter", f"org.apache.kafka.tools.consumer.{formatter.name}", "--isolation-level", "read_committed"),
        *("--timeout-ms", str(idle_ms), "--command-property", "enable.auto.commit=false"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert "Processed a total of" in done.stderr, f"ConsoleConsumer: {done.stderr}"
    return done.stdout.strip()


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, with or without line breaks between them."""
    decoder = json.JSONDecoder()
    while text:
        found, end = decoder.raw_decode(text)
        yield found
        text = text[end:].lstrip()


def decoded_records(spark: SparkSession, warehouse: str, formatter: Formatter) -> Records:
    """The same of the rows in ``raw``."""
    records: Records = defaultdict(list)
    rows: DataFrame = read_raw(spark, warehouse).where(f"kind RLIKE '^({formatter.kinds})$'").orderBy("partition", "offset")
    for row in rows.collect():
        key, said = formatter.decoded(row)
        records[key].append(said)
    return dict(records)


def differences(spark: SparkSession, warehouse: str, address: str) -> tuple[dict[str, int], list[str]]:
    """(records compared by formatter, differences)."""
    counts, found = {}, []
    # Most of the time each waits for more.
    with ThreadPoolExecutor() as pool:
        all_printed = pool.map(lambda formatter: print_records(formatter, address), FORMATTERS)
    for formatter, printed in zip(FORMATTERS, all_printed, strict=True):
        decoded = decoded_records(spark, warehouse, formatter)
        counts[formatter.name] = sum(map(len, printed.values()))
        found += [
            f"{formatter.name} {key}: printed {printed.get(key)}, decoded {decoded.get(key)}"
            for key in sorted(printed.keys() | decoded.keys(), key=str)
            if printed.get(key) != decoded.get(key)
        ]
    return counts, found


def _printed_offset(key: dict[str, Any], value: dict[str, Any] | None) -> tuple[tuple, Any]:
    told = value and (
        value["offset"],
        value["leaderEpoch"],
        value["metadata"],
        value["commitTimestamp"],
        _topic_id(value.get("topicId")),
    )
    return (key["group"], key["topic"], key["partition"]), told


def _topic_id(printed: str | None) -> str | None:
    """None where it says that there is none."""
    return None if printed in (None, "AAAAAAAAAAAAAAAAAAAAAA") else printed


def _decoded_offset(row: Any) -> tuple[tuple, Any]:
    told = None
    if not row.is_tombstone:
        told = (row.committed_offset, row.leader_epoch, row.metadata, row.commit_timestamp_ms, row.topic_id)
    return (row.group, row.commit_topic, row.commit_partition), told


def _printed_group(key: dict[str, Any], value: dict[str, Any] | None) -> tuple[tuple, Any]:
    if value is None:
        return (key["group"],), None
    members = [
        (
            *(member["memberId"], member["groupInstanceId"], member["clientId"], member["clientHost"]),
            *(member["rebalanceTimeout"], member["sessionTimeout"]),
            list(ConsumerProtocolSubscription.decode(b64decode(member["subscription"])).topics),
            _assigned(b64decode(member["assignment"])),
        )
        for member in value["members"]
    ]
    fields = ("protocolType", "generation", "protocol", "leader", "currentStateTimestamp")
    return (key["group"],), (*(value[name] for name in fields), members)


def _assigned(data: bytes) -> list[tuple[str, list[int]]]:
    if not data:
        return []
    decoded = ConsumerProtocolAssignment.decode(data)
    return [(each.topic, list(each.partitions)) for each in decoded.assigned_partitions]


def _decoded_group(row: Any) -> tuple[tuple, Any]:
    if row.is_tombstone:
        return (row.group,), None
    members = [
        (
            *(member.member_id, member.group_instance_id, member.client_id, member.client_host),
            *(member.rebalance_timeout, member.session_timeout),
            member.topics,
            [(each.topic, each.partitions) for each in member.assignment],
        )
        for member in row.members
    ]
    return (row.group,), (row.protocol_type, row.generation, row.protocol, row.leader, row.state_timestamp_ms, members)


def _printed_transaction(key: dict[str, Any], value: dict[str, Any] | None) -> tuple[tuple, Any]:
    told = value and (
        value["producerId"],
        value["producerEpoch"],
        value["transactionTimeoutMs"],
        value["transactionStatus"],
        sorted((each["topic"], index) for each in value["transactionPartitions"] or [] for index in each["partitionIds"]),
        value["transactionLastUpdateTimestampMs"],
        value["transactionStartTimestampMs"],
        value.get("previousProducerId", -1),
        value.get("nextProducerId", -1),
        value.get("clientTransactionVersion", 0),
    )
    return (key["transactionalId"],), told


def _decoded_transaction(row: Any) -> tuple[tuple, Any]:
    told = None
    if not row.is_tombstone:
        told = (
            *(row.producer_id, row.producer_epoch, row.timeout_ms, row.status),
            [(each.topic, each.partition) for each in row.partitions],
            *(row.last_update_ms, row.start_ms),
            *(row.previous_producer_id, row.next_producer_id, row.client_transaction_version),
        )
    return (row.transactional_id,), told


def _printed_share(key: dict[str, Any], value: dict[str, Any] | None) -> tuple[tuple, Any]:
    return tuple(_place(_snake_case(key))), value and _snake_case(value)


def _decoded_share(row: Any) -> tuple[tuple, Any]:
    fields = json.loads(row.fields)
    key = {"type": row.key_version} | {name: fields.pop(name) for name in _OF_KEYS if name in fields}
    # Kafka does not print a tagged field that has its default.
    defaults = {"delivery_complete_count": -1, "assignment_timestamp": 0}
    value = {name: each for name, each in fields.items() if name not in defaults or each != defaults[name]}
    return tuple(_place(key)), None if row.is_tombstone else value


_OF_KEYS = ("group_id", "topic_id", "partition", "member_id")


def _place(key: dict[str, Any]) -> list[Any]:
    return [key[name] for name in (_OF_KEYS[0], "type", *_OF_KEYS[1:]) if name in key]


def _snake_case(value: Any) -> Any:
    """Fields as in ``raw``, without tagged ones that have their default."""
    if isinstance(value, dict):
        return {re.sub("(?<!^)([A-Z])", r"_\1", name).lower(): _snake_case(each) for name, each in value.items()}
    return [_snake_case(each) for each in value] if isinstance(value, list) else value


_STATE_FORMATTER = "group.share.ShareGroupStateMessageFormatter"
FORMATTERS = (
    Formatter("OffsetsMessageFormatter", CONSUMER_OFFSETS, "offset_commit", _printed_offset, _decoded_offset),
    Formatter("GroupMetadataMessageFormatter", CONSUMER_OFFSETS, "group_metadata", _printed_group, _decoded_group),
    Formatter("TransactionLogMessageFormatter", TRANSACTION_STATE, "transaction", _printed_transaction, _decoded_transaction),
    Formatter("ShareGroupMessageFormatter", CONSUMER_OFFSETS, "share_group_.*", _printed_share, _decoded_share),
    Formatter(_STATE_FORMATTER, SHARE_GROUP_STATE, "share_snapshot|share_update", _printed_share, _decoded_share),
)
