"""A member of a consumer group, by the classic protocol, which every Kafka serves, and the range assignor, which clients have.

    assigned = await member.join()          waits for the other members; the partitions of this one
    await member.heartbeat()                False: join again
    await member.commit(offsets)
    await member.leave()

The leader of the group assigns the partitions (protocol guide, "Group Membership API"). The caller commits before it joins again.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from odradek.client.api import ClientError, RequestRefused
from odradek.client.apis import GROUP, HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, OFFSET_FETCH, SYNC_GROUP
from odradek.client.cluster_client import ClusterClient, check, is_transient
from odradek.client.group_offsets import commit_request, refused_commits
from odradek.client.known_cluster import Partition, by_topic, name_of
from odradek.client.node_client import NodeClient
from odradek.protocol.coordinator_records.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    assigned_partitions,
    encode_assignment,
    encode_subscription,
    subscribed_topics,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.heartbeat import HeartbeatRequest
from odradek.protocol.message_types.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.message_types.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.message_types.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.message_types.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

HEARTBEAT_INTERVAL_MS: Final = 3_000
_SESSION_TIMEOUT_MS: Final = 45_000
_REBALANCE_TIMEOUT_MS: Final = 60_000
# A join waits for the other members.
_JOIN_TIMEOUT_MS: Final = _REBALANCE_TIMEOUT_MS + 5_000
_RANGE: Final = "range"
_REJOIN: Final = frozenset(
    {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.MEMBER_ID_REQUIRED}
)


def range_assignment(topics: Mapping[str, int], members: Mapping[str, Iterable[str]]) -> dict[str, dict[str, list[int]]]:
    """Return each member's partitions by topic. ``topics`` has numbers of partitions, ``members`` the subscribed topics.

    Each topic's partitions are dealt in ranges, in the order of the member ids; the first members get the odd ones.
    """
    assigned: dict[str, dict[str, list[int]]] = {member: {} for member in members}
    for topic, count in topics.items():
        takers = sorted(member for member, subscribed in members.items() if topic in subscribed)
        first = 0
        for number, member in enumerate(takers):
            size = count // len(takers) + (number < count % len(takers))
            if size:
                assigned[member][topic] = list(range(first, first + size))
            first += size
    return assigned


class GroupMember:
    """A member of the group ``group_id`` that is subscribed to ``topics``. Loop thread only."""

    def __init__(self, cluster: ClusterClient, group_id: str, topics: list[str]) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._topics = topics
        self._member_id = ""
        self._generation_id = -1

    async def join(self) -> list[Partition]:
        """Join, and return the partitions. Raises ClientError."""
        while True:
            try:
                joined = await self._cluster.patiently(self._join, self._topics)
                return await self._cluster.patiently(lambda joined=joined: self._sync(joined))  # type: ignore[misc]
            except RequestRefused as refusal:
                if refusal.code not in _REJOIN:
                    raise
                if refusal.code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member_id = ""

    async def heartbeat(self) -> bool:
        """Return False if the member has to join again. Raises ClientError."""
        request = HeartbeatRequest(self._group_id, self._generation_id, self._member_id)
        try:
            answer = await (await self._coordinator()).request(HEARTBEAT, request)
            check(self._group_id, answer.error_code)
        except ClientError as error:
            if isinstance(error, RequestRefused) and error.code in _REJOIN:
                if error.code != ErrorCode.REBALANCE_IN_PROGRESS:
                    self._member_id = ""
                return False
            if not is_transient(error):
                raise
        return True

    async def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Commit the offsets. Raises ClientError, also if the partitions are another member's by now."""
        if offsets:
            await self._cluster.patiently(lambda: self._commit(offsets))

    async def committed(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the committed offsets of these partitions; those without one are left out. Raises ClientError."""
        wanted = list(partitions)
        return await self._cluster.patiently(lambda: self._committed(wanted)) if wanted else {}

    async def leave(self) -> None:
        """Leave the group, so that the others need not wait for the end of the session. Raises ClientError."""
        if self._member_id:
            request = LeaveGroupRequest(self._group_id, [MemberIdentity(self._member_id, None, "the command has ended")])
            await (await self._coordinator()).request(LEAVE_GROUP, request)

    async def _coordinator(self) -> NodeClient:
        return await self._cluster.coordinator(self._group_id, GROUP)

    async def _join(self) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(_RANGE, encode_subscription(self._topics))],
        )
        answer = await (await self._coordinator()).request(JOIN_GROUP, request, _JOIN_TIMEOUT_MS)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
        check(self._group_id, answer.error_code)
        self._member_id, self._generation_id = answer.member_id, answer.generation_id
        return answer

    async def _sync(self, joined: JoinGroupResponse) -> list[Partition]:
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=_RANGE,
            assignments=await self._assign(joined) if joined.leader == joined.member_id and not joined.skip_assignment else [],
        )
        answer = await (await self._coordinator()).request(SYNC_GROUP, request, _JOIN_TIMEOUT_MS)
        check(self._group_id, answer.error_code)
        return [(topic, index) for topic, indexes in assigned_partitions(answer.assignment) for index in indexes]

    async def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Return all members' assignments, as the group's leader."""
        members = {member.member_id: subscribed_topics(member.metadata) for member in joined.members}
        topics = sorted({topic for subscribed in members.values() for topic in subscribed})
        await self._cluster.refresh(topics)
        assigned = range_assignment({topic: len(self._cluster.leaders(topic)) for topic in topics}, members)
        return [SyncGroupRequestAssignment(member, encode_assignment(0, those.items())) for member, those in assigned.items()]

    async def _commit(self, offsets: Mapping[Partition, int]) -> None:
        request = commit_request(self._group_id, offsets, generation_id=self._generation_id, member_id=self._member_id)
        answer = await (await self._coordinator()).request(OFFSET_COMMIT, request)
        for partition, code in refused_commits(answer).items():
            check(name_of(partition), code)

    async def _committed(self, partitions: list[Partition]) -> dict[Partition, int]:
        rows = [
            OffsetFetchRequestTopics(name=topic, partition_indexes=indexes) for topic, indexes in by_topic(partitions).items()
        ]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self._group_id, topics=rows)])
        answer = (await (await self._coordinator()).request(OFFSET_FETCH, request)).groups[0]
        check(self._group_id, answer.error_code)
        found = {}
        for fetched in answer.topics:
            for partition in fetched.partitions:
                check(f"{fetched.name}-{partition.partition_index}", partition.error_code)
                if partition.committed_offset >= 0:
                    found[str(fetched.name), int(partition.partition_index)] = int(partition.committed_offset)
        return found
