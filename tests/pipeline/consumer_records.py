"""The records of consumer groups as a test writes them down: (kind, is it a tombstone, fields), as ingest decodes them."""

from typing import Any

ORDERS_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
NAMES = {ORDERS_ID: "orders"}

# Of a consumer group's values, and not of a share group's.
_OF_CONSUMERS = frozenset(
    {"instance_id", "subscribed_topic_regex", "rebalance_timeout_ms", "server_assignor", "partitions_pending_revocation"}
)

ConsumerRecord = tuple[str, bool, dict[str, Any]]


def epoch(number: int | None, *, metadata_hash: int = 1) -> ConsumerRecord:
    """The group's epoch; None ends the group."""
    return _record("metadata", None if number is None else {"epoch": number, "metadata_hash": metadata_hash})


def consumer(
    member_id: str,
    *,
    instance: str | None = None,
    topics: tuple[str, ...] = ("orders",),
    regex: str | None = None,
    assignor: str | None = None,
    client: str = "app",
) -> ConsumerRecord:
    """What a member says of itself."""
    told = {"instance_id": instance, "rack_id": None, "client_id": client, "client_host": f"/{client}.example"}
    told |= {"subscribed_topic_names": list(topics), "subscribed_topic_regex": regex}
    return _record("member_metadata", told | {"rebalance_timeout_ms": 30_000, "server_assignor": assignor}, member_id=member_id)


def target(member_id: str, *partitions: int, topic_id: str = ORDERS_ID) -> ConsumerRecord:
    """What a member is to have."""
    return _record("target_assignment_member", {"topic_partitions": _topics(topic_id, partitions)}, member_id=member_id)


def assigned(number: int) -> ConsumerRecord:
    """The end of a target assignment."""
    return _record("target_assignment_metadata", {"assignment_epoch": number})


def has(
    member_id: str, number: int, *partitions: int, pending: tuple[int, ...] = (), topic_id: str = ORDERS_ID, state: int = 0
) -> ConsumerRecord:
    """What a member has at its epoch, and what it is to give up."""
    told = {"member_epoch": number, "previous_member_epoch": 0, "state": 1 if pending else state}
    told |= {"assigned_partitions": _topics(topic_id, partitions), "partitions_pending_revocation": _topics(topic_id, pending)}
    return _record("current_member_assignment", told, member_id=member_id)


def regex(expression: str, *topics: str) -> ConsumerRecord:
    """What an expression matches."""
    told = {"topics": list(topics), "version": 1, "timestamp": 1}
    return _record("regular_expression", told, regular_expression=expression)


def removed(member_id: str) -> list[ConsumerRecord]:
    """The tombstones of a member, in the coordinator's order."""
    kinds = ("current_member_assignment", "target_assignment_member", "member_metadata")
    return [_record(kind, None, member_id=member_id) for kind in kinds]


def sharing(*records: ConsumerRecord) -> list[ConsumerRecord]:
    """The same records of a share group, whose values have fewer fields."""
    return [
        (kind.replace("consumer_group_", "share_group_"), is_tombstone, {k: v for k, v in told.items() if k not in _OF_CONSUMERS})
        for kind, is_tombstone, told in records
    ]


def states_of(**names: str) -> ConsumerRecord:
    """The topics whose share partitions have a state: id by name."""
    topics = [{"topic_id": topic_id, "topic_name": name, "partitions": [0]} for name, topic_id in names.items()]
    told = {"initializing_topics": [], "initialized_topics": topics, "deleting_topics": []}
    return "share_group_state_partition_metadata", False, {"group_id": "g", **told}


def topics_of_old(**names: str) -> ConsumerRecord:
    """What Kafka before 4.1 writes of the topics: id by name."""
    topics = [{"topic_id": topic_id, "topic_name": name, "num_partitions": 1} for name, topic_id in names.items()]
    return _record("partition_metadata", {"topics": topics})


def _record(kind: str, value: dict[str, Any] | None, **key: str) -> ConsumerRecord:
    return f"consumer_group_{kind}", value is None, {"group_id": "g", **key, **(value or {})}


def _topics(topic_id: str, partitions: tuple[int, ...]) -> list[dict[str, Any]]:
    return [{"topic_id": topic_id, "partitions": list(partitions)}] if partitions else []
