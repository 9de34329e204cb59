"""The cluster that hostile requests find, and the kinds that need one: requests of some bytes that mean all there is, and others.

It has a topic of thousands of partitions, a compacted one, whose records are looked at, and long transactional ids.
"""

import struct
import time
from random import Random
from typing import Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression import ZSTD, compress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.record_batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, sealed
from odradek.protocol.records import Record, build_batch
from tests.campaigns.hostile_requests.drawn import Hostile, drawn_number
from tests.raw_client import RawClient, encode_request, produce_fields

# The topic, group and transactional id that are there.
KNOWN = "known"
LARGE = "large"
COMPACTED = "compacted"
# Of LARGE, unless less is asked for.
PARTITIONS = 10_000
_LONG_IDS = 300
_MEBIBYTE = 1 << 20
_LOOK_S = 0.05
_SET_UP_S = 600


def set_up_known(host: str, port: int) -> None:
    """Create the topic that the second client works with, and have the coordinators' topics created and loaded."""
    with RawClient(host, port) as client:
        client.socket.settimeout(_SET_UP_S)
        create_topic(client, KNOWN, 10)
        for key_type in (0, 1):
            while client.call(ApiKey.FIND_COORDINATOR, 3, key=KNOWN, key_type=key_type).error_code:
                time.sleep(_LOOK_S)
        # The first request of a group has its coordinator imported, once.
        client.call(ApiKey.HEARTBEAT, 3, group_id="none", member_id="none")


def set_up(host: str, port: int, partitions: int) -> None:
    """Create it all."""
    set_up_known(host, port)
    with RawClient(host, port) as client:
        client.socket.settimeout(_SET_UP_S)
        create_topic(client, COMPACTED, 1, cleanup__policy="compact")
        create_topic(client, LARGE, partitions)
        ids = [f"{'a' * 990}{number:010}" for number in range(_LONG_IDS)]
        for name in (KNOWN, "a" * 26, "a" * 40, "a" * 1_000, *ids):
            client.call(ApiKey.INIT_PRODUCER_ID, 3, transactional_id=name, transaction_timeout_ms=60_000)
        client.socket.sendall(_commit(KNOWN))
        assert client.receive_frame()


def create_topic(client: RawClient, name: str, partitions: int, **configs: str) -> None:
    """Create a topic, unless it is there."""
    answer = client.call(ApiKey.CREATE_TOPICS, 7, topics=[_new_topic(name, partitions, **configs)], timeout_ms=60_000)
    assert answer.topics[0].error_code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}, answer


def _new_topic(name: str, partitions: int, **configs: str) -> dict[str, Any]:
    """A topic of a CreateTopics request, with dots for two underscores in the names of its ``configs``."""
    told = [{"name": key.replace("__", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": told}


def all_there_is(random: Random) -> Hostile:
    """A request of some bytes that means every partition, group, offset or transaction there is."""
    name, frame = random.choice(_ALL)
    return Hostile(name, (frame,))


_ALL = (
    ("Metadata of all topics", encode_request(ApiKey.METADATA, 9, topics=None)),
    ("Metadata of the large topic", encode_request(ApiKey.METADATA, 9, topics=[{"name": LARGE}])),
    ("DescribeLogDirs of all", encode_request(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=None)),
    ("ElectLeaders of all", encode_request(ApiKey.ELECT_LEADERS, 2, topic_partitions=None, timeout_ms=1_000)),
    ("ListPartitionReassignments of all", encode_request(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=None, timeout_ms=1_000)),
    ("DescribeTopicPartitions", encode_request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=[{"name": LARGE}])),
    ("OffsetFetch of all", encode_request(ApiKey.OFFSET_FETCH, 8, groups=[{"group_id": KNOWN, "topics": None}])),
    (
        "OffsetFetch of all, stable",
        encode_request(ApiKey.OFFSET_FETCH, 8, groups=[{"group_id": KNOWN, "topics": None}], require_stable=True),
    ),
    ("ListGroups", encode_request(ApiKey.LIST_GROUPS, 4)),
    ("ListTransactions", encode_request(ApiKey.LIST_TRANSACTIONS, 1, duration_filter=-1)),
    ("ListConfigResources", encode_request(ApiKey.LIST_CONFIG_RESOURCES, 1)),
    ("DescribeConfigs", encode_request(ApiKey.DESCRIBE_CONFIGS, 4, resources=[{"resource_type": 4, "resource_name": "1"}])),
    (
        "a config of the broker, which is all topics' default",
        encode_request(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            resources=[
                {
                    "resource_type": 4,
                    "resource_name": "",
                    "configs": [{"name": "log.retention.ms", "config_operation": 0, "value": "86400000"}],
                }
            ],
        ),
    ),
    (
        "a config of the large topic",
        encode_request(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            resources=[
                {
                    "resource_type": 2,
                    "resource_name": LARGE,
                    "configs": [{"name": "retention.ms", "config_operation": 0, "value": "86400000"}],
                }
            ],
        ),
    ),
)


def every_partition(random: Random) -> Hostile:
    """Requests that name each partition of the large topic."""
    told, frames = random.choice((_offsets, _read, _transaction, _fetch))()
    return Hostile(f"{told} of {PARTITIONS} partitions", frames)


def _commit(group: str) -> bytes:
    """An OffsetCommit of every partition, with metadata."""
    partitions = [
        {"partition_index": index, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": "m" * 100}
        for index in range(PARTITIONS)
    ]
    topics = [{"name": LARGE, "partitions": partitions}]
    fields = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    return encode_request(ApiKey.OFFSET_COMMIT, 8, **fields)


def _offsets() -> tuple[str, tuple[bytes, ...]]:
    """Offsets committed, read and removed."""
    group = "laborious"
    of_all = {"group_id": group, "topics": None}
    frames = (
        _commit(group),
        encode_request(ApiKey.OFFSET_FETCH, 8, groups=[of_all]),
        encode_request(ApiKey.OFFSET_FETCH, 8, groups=[of_all], require_stable=True),
        encode_request(ApiKey.DELETE_GROUPS, 2, groups_names=[group]),
    )
    return "OffsetCommit, OffsetFetch, DeleteGroups", frames


def _read() -> tuple[str, tuple[bytes, ...]]:
    listed = [{"partition_index": index, "timestamp": -1, "current_leader_epoch": -1} for index in range(PARTITIONS)]
    asked = [{"partition": index, "leader_epoch": 0, "current_leader_epoch": -1} for index in range(PARTITIONS)]
    deleted = [{"partition_index": index, "offset": -1} for index in range(PARTITIONS)]
    frames = (
        encode_request(ApiKey.LIST_OFFSETS, 7, replica_id=-1, topics=[{"name": LARGE, "partitions": listed}]),
        encode_request(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, replica_id=-2, topics=[{"topic": LARGE, "partitions": asked}]),
        encode_request(ApiKey.DELETE_RECORDS, 2, topics=[{"name": LARGE, "partitions": deleted}], timeout_ms=60_000),
    )
    return "ListOffsets, OffsetForLeaderEpoch, DeleteRecords", frames


def _transaction() -> tuple[str, tuple[bytes, ...]]:
    """Partitions added to a transaction that is ended by the next one's beginning: a marker for each."""
    begin = encode_request(ApiKey.INIT_PRODUCER_ID, 3, transactional_id="laborious", transaction_timeout_ms=60_000)
    return "a transaction", (begin, *_of_producer())


def _of_producer() -> tuple[bytes, ...]:
    topics = [{"name": LARGE, "partitions": list(range(PARTITIONS))}]
    # The producer id and epoch are those of the answer in front (``run``).
    add = encode_request(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id="laborious",
        v3_and_below_producer_id=PRODUCER_ID,
        v3_and_below_producer_epoch=PRODUCER_EPOCH,
        v3_and_below_topics=topics,
    )
    end = encode_request(
        ApiKey.END_TXN,
        3,
        transactional_id="laborious",
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
        committed=True,
    )
    return add, end


# What stands for the producer id and epoch of the last InitProducerId: ``with_producer`` puts them in.
PRODUCER_ID = 0x6F64726164656B21
PRODUCER_EPOCH = 0x7A7B
_PRODUCER = struct.pack(">qh", PRODUCER_ID, PRODUCER_EPOCH)


def with_producer(frame: bytes, answer: bytes | None) -> bytes:
    """``frame`` for the producer of ``answer``, to an InitProducerId of version 3."""
    if answer is None or _PRODUCER not in frame:
        return frame
    # Correlation id, tagged fields, throttle time, error code; then id and epoch.
    return frame.replace(_PRODUCER, answer[11:21])


def _fetch() -> tuple[str, tuple[bytes, ...]]:
    partitions = [
        {
            "partition": index,
            "current_leader_epoch": -1,
            "fetch_offset": 0,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": 1024,
        }
        for index in range(PARTITIONS)
    ]
    fields = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": _MEBIBYTE}
    frame = encode_request(ApiKey.FETCH, 12, topics=[{"topic": LARGE, "partitions": partitions}], **fields)
    return "Fetch", (frame,)


def record_bomb(random: Random) -> Hostile:
    """A batch that is small until its records are looked at, and records that take long to look at."""
    topic = random.choice((KNOWN, COMPACTED, COMPACTED))
    megabytes = random.choice((1, 60, 900))
    record = random.choice(
        (
            bytes([12, 0, 0, 0, 1, 1, 0]),  # no key
            bytes([14, 0, 0, 0, 2, 0x6B, 1, 0]),  # a key
            bytes([14, 0, 2, 0, 2, 0x6B, 1, 0]),  # a key, and a time of its own
            build_batch([Record(key=b"k", value=bytes(1_000), timestamp=0)])[HEADER_SIZE:],
            build_batch([Record(key=b"k", headers=(("h", b""),) * 1_000, timestamp=0)])[HEADER_SIZE:],
            bytes(100),
        )
    )
    count = megabytes * _MEBIBYTE // len(record)
    payload = _compressed(record, count)
    size = HEADER_SIZE - LOG_OVERHEAD + len(payload)
    head = HEADER.pack(0, size, -1, MAGIC, 0, ZSTD, count - 1, 0, 0, -1, -1, -1, count)
    frame = encode_request(ApiKey.PRODUCE, 9, **produce_fields(topic, sealed(head, payload), acks=1))
    return Hostile(f"{megabytes} MiB of records of {len(record)} bytes to {topic}", (frame,))


def many_batches(random: Random) -> Hostile:
    """Small batches for thousands of partitions, one of them again and again."""
    count = random.choice((1_000, 15_000))
    batch = build_batch([Record(key=b"k", value=b"v", timestamp=0)])
    topic = random.choice((LARGE, COMPACTED))
    partitions = [{"index": index if topic == LARGE else 0, "records": batch} for index in range(count)]
    fields = {"transactional_id": None, "acks": 1, "timeout_ms": 10_000}
    frame = encode_request(ApiKey.PRODUCE, 9, topic_data=[{"name": topic, "partition_data": partitions}], **fields)
    return Hostile(f"Produce of {count} batches to {topic}", (frame,))


def many_topics(random: Random) -> Hostile:
    """Thousands of topics created by one request and deleted by another."""
    count = drawn_number(random, {200: 8, 1_000: 3, 10_000: 1})
    names = [f"one-of-many-{number}" for number in range(count)]
    create = encode_request(ApiKey.CREATE_TOPICS, 7, topics=[_new_topic(name, 1) for name in names], timeout_ms=60_000)
    delete = encode_request(ApiKey.DELETE_TOPICS, 5, topic_names=names, timeout_ms=60_000)
    return Hostile(f"{count} topics", (create, delete))


def _compressed(record: bytes, count: int) -> bytes:
    """The same record so many times, compressed in parts: frames of zstd may follow each other."""
    most = max(16 * _MEBIBYTE // len(record), 1)
    whole, rest = divmod(count, most)
    return compress(ZSTD, record * most) * whole + (compress(ZSTD, record * rest) if rest else b"")
