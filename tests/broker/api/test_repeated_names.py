"""Names that a request repeats: answered once or each time, as Apache Kafka 4.4.0 answers them, and looked up once."""

import pytest

from odradek.protocol.api_keys import ApiKey
from tests.raw_client import decode_response, encode_request

PARTITIONS = [("t", [0, 0, 1, 7, 7]), ("t", [0])]


def named(topics, field="partitions", name="name", item=lambda index: index):
    return [{name: topic, field: [item(index) for index in indexes]} for topic, indexes in topics]


def told(topics, name="name", field="partitions"):
    """The partitions of each topic that is answered, errors left out; in order, which is nobody's promise."""
    return [
        (getattr(topic, name), sorted(each.partition_index for each in getattr(topic, field)))
        for topic in sorted(topics, key=lambda topic: getattr(topic, name))
    ]


EACH = [("t", [0, 0, 1, 7, 7]), ("t", [0])]
ONCE = [("t", [0, 1, 7])]
GROUPS = ["g", "h", "g", "g"]

CASES = {
    "Metadata": (
        ApiKey.METADATA,
        12,
        {"topics": [{"name": name} for name in "tuttu"]},
        lambda r: [t.name for t in r.topics],
        ["t", "u"],
    ),
    "ListOffsets": (
        ApiKey.LIST_OFFSETS,
        7,
        {"topics": named(PARTITIONS, item=lambda index: {"partition_index": index, "timestamp": -1})},
        lambda r: told(r.topics),
        ONCE,
    ),
    "OffsetFetch of partitions": (
        ApiKey.OFFSET_FETCH,
        8,
        {"groups": [{"group_id": "g", "topics": named(PARTITIONS, "partition_indexes")}]},
        lambda r: told(r.groups[0].topics),
        EACH,
    ),
    "OffsetFetch of groups": (
        ApiKey.OFFSET_FETCH,
        8,
        {"groups": [{"group_id": group, "topics": None} for group in GROUPS]},
        lambda r: [g.group_id for g in r.groups],
        GROUPS,
    ),
    "DescribeProducers": (
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        {"topics": named(PARTITIONS, "partition_indexes")},
        lambda r: told(r.topics),
        EACH,
    ),
    "DescribeLogDirs": (
        ApiKey.DESCRIBE_LOG_DIRS,
        4,
        {"topics": named(PARTITIONS, name="topic")},
        lambda r: told(r.results[0].topics),
        [("t", [0, 1])],
    ),
    "DeleteRecords": (
        ApiKey.DELETE_RECORDS,
        2,
        {"topics": named(PARTITIONS, item=lambda index: {"partition_index": index, "offset": 0}), "timeout_ms": 1_000},
        lambda r: told(r.topics),
        ONCE,
    ),
    "AlterReplicaLogDirs": (
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        {"dirs": [{"path": "/nowhere", "topics": named(PARTITIONS)}]},
        lambda r: told(r.results, "topic_name"),
        ONCE,
    ),
    "DescribeTopicPartitions": (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        {"topics": [{"name": name} for name in "tut"], "response_partition_limit": 100, "cursor": None},
        lambda r: [t.name for t in r.topics],
        ["t", "u"],
    ),
    "FindCoordinator": (
        ApiKey.FIND_COORDINATOR,
        4,
        {"key_type": 0, "coordinator_keys": GROUPS},
        lambda r: [c.key for c in r.coordinators],
        GROUPS,
    ),
    "DescribeGroups": (ApiKey.DESCRIBE_GROUPS, 5, {"groups": GROUPS}, lambda r: [g.group_id for g in r.groups], GROUPS),
    "ConsumerGroupDescribe": (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        {"group_ids": GROUPS},
        lambda r: [g.group_id for g in r.groups],
        GROUPS,
    ),
    "DeleteGroups": (ApiKey.DELETE_GROUPS, 2, {"groups_names": GROUPS}, lambda r: [g.group_id for g in r.results], ["g", "h"]),
    "DescribeConfigs": (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        {"resources": [{"resource_type": 2, "resource_name": name, "configuration_keys": None} for name in "tut"]},
        lambda r: [each.resource_name for each in r.results],
        ["t", "u", "t"],
    ),
    "ListTransactions": (
        ApiKey.LIST_TRANSACTIONS,
        1,
        {"state_filters": ["no", "no"], "producer_id_filters": [], "duration_filter": -1},
        lambda r: r.unknown_state_filters,
        ("no",),
    ),
    "DescribeUserScramCredentials": (
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        {"users": [{"name": name} for name in "aba"]},
        lambda r: [each.user for each in r.results],
        ["a", "b"],
    ),
}


@pytest.fixture
async def broker(node):
    topics = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in "tu"]
    await ask(node, ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=10_000)
    return node


async def ask(node, api_key, version, **fields):
    frame = await node.broker.ask_bytes(encode_request(api_key, version, **fields)[4:])
    return decode_response(api_key, version, frame)[1]


@pytest.mark.parametrize("name", CASES)
async def test_a_name_is_answered_as_often_as_kafka_answers_it(broker, name):
    api_key, version, fields, names, expected = CASES[name]
    assert names(await ask(broker, api_key, version, **fields)) == expected


@pytest.mark.parametrize("name", ["DescribeGroups", "ConsumerGroupDescribe", "DescribeConfigs", "DeleteGroups", "Metadata"])
async def test_the_same_holds_for_a_large_request(broker, name):
    api_key, version, fields, names, expected = CASES[name]
    (field, items), *others = fields.items()
    copies = 8 * 1024 // len(items)
    answered = names(await ask(broker, api_key, version, **{field: list(items) * copies}, **dict(others)))
    if len(expected) == len(items):
        expected = expected * copies
    assert answered == expected


async def test_transactional_ids_are_answered_each_time(node):
    # kio cannot decode the time of a transaction that has not begun.
    frame = await node.broker.ask_bytes(encode_request(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["x", "y", "x"])[4:])
    assert (frame.count(b"\x02x"), frame.count(b"\x02y")) == (2, 1)


async def test_the_last_offset_named_for_a_partition_is_the_one_records_are_deleted_before(broker):
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "offset": offset} for offset in (99, 0)]}]
    answer = await ask(broker, ApiKey.DELETE_RECORDS, 2, topics=topics, timeout_ms=1_000)
    assert [(each.partition_index, each.error_code) for each in answer.topics[0].partitions] == [(0, 0)]


@pytest.mark.interpreted
async def test_a_group_that_is_named_again_is_looked_up_once(node, monkeypatch):
    runtime = node.core.groups.runtime
    asked = []
    read = runtime.read
    monkeypatch.setattr(runtime, "read", lambda key, operation: asked.append(key) or read(key, operation))
    for api_key, version, fields in (
        (ApiKey.DESCRIBE_GROUPS, 5, {"groups": GROUPS}),
        (ApiKey.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": GROUPS}),
        (ApiKey.OFFSET_FETCH, 8, {"groups": [{"group_id": group, "topics": None} for group in GROUPS]}),
    ):
        asked.clear()
        await ask(node, api_key, version, **fields)
        # The runtime's own work is by number.
        assert [key for key in asked if isinstance(key, str)] == ["g", "h"]
