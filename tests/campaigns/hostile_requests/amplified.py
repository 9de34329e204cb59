"""Small requests with large answers, each a scenario with a name: one thing named again and again, all that there is, floods.

``AMPLIFIED`` has a row for each API whose answer may have hundreds of times the size of its request. From it come the
``SCENARIOS`` that can be run by name, and the kinds that are drawn. A scenario is told by what is asked for and how often.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, NamedTuple

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.hostile_requests import found
from tests.campaigns.hostile_requests.cluster import KNOWN
from tests.campaigns.hostile_requests.drawn import Hostile, Manner
from tests.raw_client import encode_request

_SCENARIO_S = 5.0
# Long enough for the answers to all of them.
_SLOW_S = 20.0
_DRAWN_S = 1.0
# queued.max.response.bytes: what large answers that clients have not taken may have together.
_ANSWERS_BYTES = 128 * 1024 * 1024
_SLOW_CONNECTIONS = 150
_FLOOD_CONNECTIONS = (1, 10, 50)
_TOPIC, _BROKER, _GROUP = 2, 4, 32


class Amplified(NamedTuple):
    """A request whose answer is larger. ``frame`` makes it with what it asks for named so many times (``counts``)."""

    frame: Callable[[int], bytes]
    counts: tuple[int, ...] = (1,)
    needs: str | None = None
    # How often each of many connections names it.
    each_count: int = 1


def _frame(api_key: ApiKey, version: int, **fields: Any) -> bytes:
    return encode_request(api_key, version, client_id="hostile", **fields)


def _offsets(count: int, *, require_stable: bool) -> bytes:
    groups = [{"group_id": found.OFFSETS_GROUP, "topics": None}] * count
    return _frame(ApiKey.OFFSET_FETCH, 8, groups=groups, require_stable=require_stable)


def _producers(topic: str, count: int) -> bytes:
    return _frame(ApiKey.DESCRIBE_PRODUCERS, 0, topics=[{"name": topic, "partition_indexes": [0] * count}])


def _new_topics(count: int) -> bytes:
    one = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    topics = [{"name": f"{number:05}", **one} for number in range(count)]
    return _frame(ApiKey.CREATE_TOPICS, 7, topics=topics, validate_only=True, timeout_ms=10_000)


def _classic_groups(count: int) -> bytes:
    groups = [f"{found.CLASSIC}{number % found.CLASSIC_GROUPS:02}" for number in range(count)]
    return _frame(ApiKey.DESCRIBE_GROUPS, 5, groups=groups)


def _configs(resource_type: int, names: list[str]) -> bytes:
    resources = [{"resource_type": resource_type, "resource_name": name} for name in names]
    return _frame(ApiKey.DESCRIBE_CONFIGS, 4, resources=resources, include_synonyms=True, include_documentation=True)


def _fetch(count: int) -> bytes:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 30}
    topics = [{"topic": found.RECORDS, "partitions": [partition] * count}]
    return _frame(ApiKey.FETCH, 12, topics=topics, max_bytes=1 << 30, min_bytes=0)


def _quorum(count: int) -> bytes:
    topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}] * count}]
    return _frame(ApiKey.DESCRIBE_QUORUM, 1, topics=topics)


def _all_acls(_count: int) -> bytes:
    return _frame(ApiKey.DESCRIBE_ACLS, 3, resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)


def _no_acls(count: int) -> bytes:
    """Each filter is looked for through all entries, and selects none."""
    one = {"resource_type_filter": 2, "pattern_type_filter": 3, "operation": 1, "permission_type": 1}
    filters = [{**one, "principal_filter": f"User:{number}"} for number in range(count)]
    return _frame(ApiKey.DELETE_ACLS, 3, filters=filters)


AMPLIFIED: dict[str, Amplified] = {
    "ConsumerGroupDescribe": Amplified(
        lambda count: _frame(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[found.TEN] * count), (20, 300), found.TEN
    ),
    "ConsumerGroupDescribe-41-members": Amplified(
        lambda count: _frame(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[found.FORTY_ONE] * count), (1,), found.FORTY_ONE
    ),
    "OffsetFetch": Amplified(partial(_offsets, require_stable=False), (1_000, 15_000), found.OFFSETS_GROUP, 50),
    "OffsetFetch-stable": Amplified(partial(_offsets, require_stable=True), (1_000, 15_000), found.OFFSETS_GROUP, 50),
    "DescribeProducers": Amplified(partial(_producers, found.PRODUCERS), (50, 5_000), found.PRODUCERS),
    "DescribeProducers-of-100000": Amplified(partial(_producers, found.MORE_PRODUCERS), (1,), found.MORE_PRODUCERS),
    "CreateTopics": Amplified(_new_topics, (8_400,), None, 8_400),
    "DescribeGroups": Amplified(_classic_groups, (found.CLASSIC_GROUPS, 2_000), found.CLASSIC),
    "DescribeTransactions": Amplified(
        lambda count: _frame(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[found.TRANSACTION] * count),
        (1_000, 15_000),
        found.TRANSACTION,
        50,
    ),
    "DescribeConfigs-of-topic": Amplified(lambda count: _configs(_TOPIC, [KNOWN] * count), (1_000, 20_000), None, 100),
    "DescribeConfigs-of-broker": Amplified(lambda count: _configs(_BROKER, ["1"] * count), (1, 20_000)),
    # Any group has configs, whether it is there or not.
    "DescribeConfigs-of-groups": Amplified(
        lambda count: _configs(_GROUP, [f"{number:06}" for number in range(count)]), (1_000, 10_000), None, 1_000
    ),
    "Metadata": Amplified(
        lambda count: _frame(ApiKey.METADATA, 9, topics=[{"name": found.WIDE}] * count), (1, 15_000), found.WIDE
    ),
    "Metadata-of-all": Amplified(lambda _count: _frame(ApiKey.METADATA, 9, topics=None), needs=found.WIDE),
    "DescribeTopicPartitions": Amplified(
        lambda count: _frame(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=[{"name": found.WIDE}] * count),
        (1, 15_000),
        found.WIDE,
    ),
    "DescribeLogDirs": Amplified(lambda _count: _frame(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=None), needs=found.WIDE),
    "ListGroups": Amplified(lambda _count: _frame(ApiKey.LIST_GROUPS, 4), needs=found.LONG_GROUPS),
    "ListTransactions": Amplified(
        lambda _count: _frame(ApiKey.LIST_TRANSACTIONS, 1, duration_filter=-1), needs=found.LONG_TRANSACTIONAL_IDS
    ),
    "DescribeClientQuotas": Amplified(lambda _count: _frame(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1), needs=found.CLIENT_QUOTAS),
    "DescribeUserScramCredentials": Amplified(
        lambda _count: _frame(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=None), needs=found.SCRAM_USERS
    ),
    "DescribeAcls": Amplified(_all_acls, needs=found.ACLS),
    "DeleteAcls": Amplified(_no_acls, (1_000,), found.ACLS, 100),
    "DescribeQuorum": Amplified(_quorum, (15_000,), None, 15_000),
    "Fetch": Amplified(_fetch, (1, 15_000), found.RECORDS),
}
# They need a broker with an authorizer.
_SCENARIO_ONLY = {"DescribeAcls", "DeleteAcls"}
SMALL = {
    # 21 bytes: four of length, eight of header, and a client id of seven letters.
    "ApiVersions": _frame(ApiKey.API_VERSIONS, 0),
    "Metadata-of-one": _frame(ApiKey.METADATA, 9, topics=[{"name": KNOWN}]),
    "FindCoordinator": _frame(ApiKey.FIND_COORDINATOR, 3, key="k"),
    "Heartbeat": _frame(ApiKey.HEARTBEAT, 3, group_id="none", member_id="none"),
    "ListOffsets": _frame(ApiKey.LIST_OFFSETS, 5, topics=[{"name": KNOWN, "partitions": [{"timestamp": -1}]}]),
}


def _asked(name: str, count: int) -> Hostile:
    """What a row of ``AMPLIFIED`` asks for, so many times."""
    row = AMPLIFIED[name]
    return Hostile(f"{name} x {count}", (row.frame(count),), row.needs, answers_bytes=_ANSWERS_BYTES)


def _read_slowly(name: str, connections: int, lasts_s: float) -> Hostile:
    """The same by so many connections that hardly read."""
    row = AMPLIFIED[name]
    told = f"{name} x {row.each_count}, {connections} that read slowly"
    return Hostile(told, (row.frame(row.each_count),), row.needs, Manner.SLOWLY, connections, lasts_s, _ANSWERS_BYTES)


def _flood(name: str, connections: int, lasts_s: float) -> Hostile:
    """Connections kept full of one of the ``SMALL``, or of what a row asks for."""
    row = AMPLIFIED.get(name)
    frame, needs = (SMALL[name], None) if row is None else (row.frame(row.each_count), row.needs)
    return Hostile(f"{name} on {connections} connections", (frame,), needs, Manner.FLOOD, connections, lasts_s, _ANSWERS_BYTES)


# What each name stands for.
SCENARIOS: dict[str, Callable[[], Hostile]] = {
    **{
        f"flood-{name}-{connections}": partial(_flood, name, connections, _SCENARIO_S)
        for name in SMALL
        for connections in _FLOOD_CONNECTIONS
    },
    **{f"{name}-{count}": partial(_asked, name, count) for name, row in AMPLIFIED.items() for count in row.counts},
    **{f"slow-{name}": partial(_read_slowly, name, _SLOW_CONNECTIONS, _SLOW_S) for name in AMPLIFIED},
    **{f"flood-{name}": partial(_flood, name, _FLOOD_CONNECTIONS[-1], _SCENARIO_S) for name in AMPLIFIED},
}


def _drawn_name(random: Random) -> str:
    return random.choice([name for name in AMPLIFIED if name not in _SCENARIO_ONLY])


def large_answer(random: Random) -> Hostile:
    """A row, with one of its counts or any below."""
    name = _drawn_name(random)
    most = random.choice(AMPLIFIED[name].counts)
    return _asked(name, random.choice((1, most, random.randint(1, most))))


def slow_readers(random: Random) -> Hostile:
    """Connections that ask for what is large, and hardly read."""
    return _read_slowly(_drawn_name(random), random.randint(1, _SLOW_CONNECTIONS), _DRAWN_S)


def floods(random: Random) -> Hostile:
    """Connections full of one of the smallest requests, or of one whose answer is large."""
    name = random.choice((random.choice(list(SMALL)), _drawn_name(random)))
    return _flood(name, random.choice(_FLOOD_CONNECTIONS), _DRAWN_S)
