"""Steps of consumer groups, with short names: what ``consumers`` draws and ``consumer_stories`` tells are made of them.

A member is named by one letter or more. Its id is the client's own, so that assignors see members in one order on every broker.
``WHO.epoch`` and ``WHO.owned`` are bound to what it was told last.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.wire_differential.cases import setup
from tests.campaigns.wire_differential.cases.setup import GROUP, TOPIC
from tests.campaigns.wire_differential.script import Ref, Step

OTHER = "@u"
REBALANCE_MS = 60_000
NEWEST = 1
GROUP_RESOURCE = 32
SET, DELETE = 0, 1
# Full names of what a member that joins says.
_JOINING = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": [TOPIC], "topic_partitions": []}


def epoch_of(who: str, plus: int = 0) -> Ref:
    """The epoch that the member was told last, or one beside it."""
    return Ref(f"{who}.epoch", 1, plus)


def owned_by(who: str) -> Ref:
    """All that the member was told to have."""
    return Ref(f"{who}.owned", [])


def owned(*indexes: int, topic: str = "tid") -> list[dict[str, Any]]:
    """Some partitions of one topic."""
    return [{"topic_id": Ref(topic), "partitions": list(indexes)}]


def beat(label: str, who: str, epoch: Any = None, version: int = NEWEST, **fields: Any) -> Step:
    """A heartbeat; a full one with ``range`` to join, unless ``fields`` say otherwise."""
    asked = {"group_id": GROUP, "member_id": f"@{who}", "member_epoch": epoch_of(who) if epoch is None else epoch}
    # What uniform gives to whom depends on hashes in Kafka.
    joining = {**_JOINING, "server_assignor": "range"} if epoch == 0 else {"rebalance_timeout_ms": -1}
    return Step(
        label,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        version,
        {**asked, "topic_partitions": None, "subscribed_topic_names": None, **joining, **fields},
        bind={f"{who}.epoch": "member_epoch", f"{who}.owned": "assignment.topic_partitions[]"},
    )


def commit(label: str, who: str, epoch: Any = None, version: int = 9, **fields: Any) -> Step:
    """An OffsetCommit of partition 0."""
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "", "committed_leader_epoch": -1}
    asked = {
        "group_id": GROUP,
        "generation_id_or_member_epoch": epoch_of(who) if epoch is None else epoch,
        "member_id": f"@{who}" if who else "",
        "group_instance_id": None,
        "topics": [{"name": TOPIC, "topic_id": Ref("tid"), "partitions": [partition]}],
    }
    return Step(label, ApiKey.OFFSET_COMMIT, version, {**asked, **fields})


def fetch(label: str, who: str, epoch: Any = None, version: int = 9, **fields: Any) -> Step:
    """An OffsetFetch of partition 0."""
    topics = [{"name": TOPIC, "topic_id": Ref("tid"), "partition_indexes": [0]}]
    group = {
        "group_id": GROUP,
        "member_id": f"@{who}" if who else None,
        "member_epoch": epoch_of(who) if epoch is None else epoch,
        "topics": topics,
        **fields,
    }
    return Step(label, ApiKey.OFFSET_FETCH, version, {"group_id": GROUP, "topics": topics, "groups": [group]})


def looks(label: str, group: str = GROUP) -> Iterator[Step]:
    """The group as each API has it."""
    yield Step(f"{label}: described", ApiKey.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": [group]})
    yield Step(f"{label}: described as classic", ApiKey.DESCRIBE_GROUPS, 6, {"groups": [group]})
    yield Step(f"{label}: listed", ApiKey.LIST_GROUPS, 5, {"types_filter": ["consumer", "classic"]})


def topics(**partitions: int) -> Iterator[Step]:
    """Topics by name, with ids bound: ``tid`` of t, ``uid`` of u. Kafka's coordinator, told after its broker, knows them."""
    for name, count in partitions.items():
        yield from setup.topic(f"@{name}", count, bind=f"{name}id")
        asked = {
            "group_id": f"@knows-{name}",
            "member_id": "knows",
            "member_epoch": 0,
            **_JOINING,
            "subscribed_topic_names": [f"@{name}"],
        }
        yield Step("", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, asked, until=until_given(count))


def until_given(count: int) -> tuple[str, tuple[int, ...]]:
    """A heartbeat is sent again until its answer tells of partitions."""
    return "assignment.topic_partitions.partitions", tuple(range(count))


def alter(label: str, changes: Sequence[tuple[str, str | None, int]], group: str = GROUP, kind: int = GROUP_RESOURCE) -> Step:
    """IncrementalAlterConfigs of a group."""
    configs = [{"name": name, "value": value, "config_operation": operation} for name, value, operation in changes]
    asked = {"resources": [{"resource_type": kind, "resource_name": group, "configs": configs}], "validate_only": False}
    return Step(label, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, asked)
