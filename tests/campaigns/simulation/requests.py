"""Requests of members and administrators, as canonical messages, and a leader's assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from tests.campaigns.simulation.plan import GroupPlan

COMMIT = messages(ApiKey.OFFSET_COMMIT)
FETCH = messages(ApiKey.OFFSET_FETCH)
DELETE = messages(ApiKey.DELETE_GROUPS)
DESCRIBE = messages(ApiKey.DESCRIBE_GROUPS)
LIST = messages(ApiKey.LIST_GROUPS)

_SHOWN = (
    "error_code",
    "member_id",
    "group_instance_id",
    "generation_id",
    "generation_id_or_member_epoch",
    "leader",
    "assignment",
    "topics",
    "groups",
    "results",
    "groups_names",
)


class Brief:
    """A message for the trace: its informative fields, formatted only if the trace is read."""

    __slots__ = ("_message",)

    def __init__(self, message: Any) -> None:
        self._message = message

    def __str__(self) -> str:
        values = ((name, getattr(self._message, name, None)) for name in _SHOWN)
        return " ".join(f"{name}={value}" for name, value in values if value not in (None, "", ()))


def commit(consumer: Any, group_id: str, topic_id: UUID, offsets: Mapping[int, int], *, topic: str = "") -> Any:
    """An OffsetCommit of a member, or of a client that is no member. The topic has the group's id for a name, if no other."""
    partition = COMMIT.OffsetCommitRequestPartition
    return COMMIT.OffsetCommitRequest(
        group_id=group_id,
        member_id="" if consumer is None else consumer.member_id,
        generation_id_or_member_epoch=-1 if consumer is None else consumer.generation,
        group_instance_id=None if consumer is None else consumer.instance_id,
        topics=[
            COMMIT.OffsetCommitRequestTopic(
                topic_id=topic_id,
                name=topic or group_id,
                partitions=[partition(partition_index=index, committed_offset=offset) for index, offset in offsets.items()],
            )
        ],
    )


def fetch(
    group_id: str, topic_id: UUID, partitions: tuple[int, ...], *, require_stable: bool, topic: str = "", member: Any = None
) -> Any:
    """An OffsetFetch for one group, of anybody or of a member that says so."""
    group = FETCH.OffsetFetchRequestGroup(
        group_id=group_id,
        member_id=None if member is None else member.member_id,
        member_epoch=-1 if member is None else member.generation,
        topics=[FETCH.OffsetFetchRequestTopics(name=topic or group_id, topic_id=topic_id, partition_indexes=partitions)],
    )
    return FETCH.OffsetFetchRequest(groups=[group], require_stable=require_stable)


def delete(group_id: str) -> Any:
    """A DeleteGroups for one group."""
    return DELETE.DeleteGroupsRequest(groups_names=[group_id])


def describe(group_id: str) -> Any:
    """A DescribeGroups for one group."""
    return DESCRIBE.DescribeGroupsRequest(groups=[group_id])


def list_groups(states: tuple[str, ...]) -> Any:
    """A ListGroups for groups in one of ``states``, or in any."""
    return LIST.ListGroupsRequest(states_filter=states)


def subscription(topic: str) -> bytes:
    """A consumer's subscription to one topic, version 0, up to its user data, in which the member lists its owned partitions."""
    name = topic.encode()
    return (0).to_bytes(2, "big") + (1).to_bytes(4, "big") + len(name).to_bytes(2, "big") + name


def assignment(token: str, group: GroupPlan, members: Any) -> list[tuple[str, bytes]]:
    """``token|partitions`` by member id. As cooperative assignors do, it assigns no partition that another member owns."""
    start = len(subscription(group.group_id))
    ids = sorted(member.member_id for member in members)
    owners: dict[int, set[str]] = {}
    for member in members:
        owned = bytes(member.metadata)[start:]
        for index in map(int, owned.split(b",")) if owned else ():
            owners.setdefault(index, set()).add(member.member_id)
    parts: dict[str, list[int]] = {member_id: [] for member_id in ids}
    for index in range(group.partition_count):
        wanted = ids[index % len(ids)]
        if owners.get(index, set()) <= {wanted}:
            parts[wanted].append(index)
    return [(member_id, f"{token}|{','.join(map(str, indexes))}".encode()) for member_id, indexes in parts.items()]
