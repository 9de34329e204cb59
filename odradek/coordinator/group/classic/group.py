"""A classic group as it is now: its state, its generation and its members.

Left out: answers, records and deadlines. The operations of this package decide on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.classic.states import GroupState, check_transition
from odradek.coordinator.group.interface import SINCE_COMMIT
from odradek.coordinator.runtime.result import CoordinatorRecord
from odradek.protocol.coordinator_records import GroupMetadataKey
from odradek.protocol.coordinator_records.consumer_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.message_types.describe_groups import DescribedGroup

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from odradek.coordinator.group.classic.member import JoinReply, Member, Protocols
    from odradek.coordinator.group.classic.states import RebalanceNotes

GROUP_TYPE: Final = "classic"
MAX_GENERATION: Final = 2**31 - 1


class ClassicGroup:
    """The live state of one group. Only operations of its shard change it. Loop thread only.

    ``state_since_ms`` is wall time, -1 if unknown. ``subscribed_topics`` is None if the members are not consumers, or their
    subscriptions cannot be read.
    """

    __slots__ = (
        "generation",
        "group_id",
        "is_assigned",
        "leader",
        "members",
        "new_member_added",
        "notes",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol",
        "protocol_type",
        "settled_members",
        "state",
        "state_since_ms",
        "static_members",
        "subscribed_topics",
        "supporters",
        "waiting_joins",
    )

    def __init__(self, group_id: str, state: GroupState, generation: int, state_since_ms: int) -> None:
        # Identity.
        self.group_id = group_id
        self.protocol_type: str | None = None
        # The generation. It begins with CompletingRebalance, or with Empty if no member is left.
        self.generation = generation
        self.protocol: str | None = None
        self.leader: str | None = None
        # True if the leader's assignment has been decided on, committed or not.
        self.is_assigned = False
        self.subscribed_topics: frozenset[str] | None = None
        # The members in the order of joining, and two indexes of them.
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.supporters: dict[str, int] = {}
        # The member ids when the group was last Stable or Empty.
        self.settled_members: frozenset[str] = frozenset()
        # The state, and the requests that it still awaits. A dict without values is a set that keeps its order.
        self.state = state
        self.previous_state = GroupState.DEAD
        self.state_since_ms = state_since_ms
        self.waiting_joins = 0
        # Pending members: the member id each was given to come back with, and until when it is valid (monotonic).
        self.pending_joins: dict[str, float] = {}
        self.pending_syncs: dict[str, None] = {}
        self.new_member_added = False
        self.notes: RebalanceNotes | None = None

    @property
    def uses_consumer_protocol(self) -> bool:
        """Return whether the members are consumers, so that their subscriptions are topics."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def has_all_members_joined(self) -> bool:
        """Return whether all members have joined, pending members included."""
        return self.waiting_joins == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return how long a rebalance waits for members: their longest rebalance timeout."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads ``topic``; assumed of consumers with unknown subscriptions."""
        return self.uses_consumer_protocol if self.subscribed_topics is None else topic in self.subscribed_topics

    @property
    def group_type(self) -> str:
        """Return the type that ListGroups shows."""
        return GROUP_TYPE

    @property
    def is_empty(self) -> bool:
        """Return whether the group has no members."""
        return self.state is GroupState.EMPTY

    @property
    def member_count(self) -> int:
        """Return the number of members."""
        return len(self.members)

    def describe(self) -> DescribedGroup:
        """Describe the group. Protocol and metadata are shown in Stable only: before, they are not settled."""
        protocol = self.protocol if self.state is GroupState.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state.value,
            protocol_type=self.protocol_type or "",
            protocol_data=protocol or "",
            members=[member.describe(protocol) for member in self.members.values()],
        )

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int, at_offset: int) -> ErrorCode:  # noqa: ARG002
        """Return NONE: anybody may fetch."""
        return ErrorCode.NONE

    def offsets_expire_since_ms(self) -> int | None:
        """Return when the group became empty; SINCE_COMMIT if it is simple, or Stable with known topics; None otherwise."""
        if self.state is GroupState.EMPTY:
            return SINCE_COMMIT if self.protocol_type is None else self.state_since_ms
        knows_topics = self.uses_consumer_protocol and self.subscribed_topics is not None
        return SINCE_COMMIT if self.state is GroupState.STABLE and knows_topics else None

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the record that deletes the group."""
        return [CoordinatorRecord(GroupMetadataKey(self.group_id), None)]

    def validate_delete(self) -> ErrorCode:
        """Return NON_EMPTY_GROUP unless the group is empty."""
        return ErrorCode.NONE if self.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP

    def validate_offset_delete(self) -> ErrorCode:
        """Return NONE for a group of consumers, whose topics are known; otherwise as for a deletion."""
        return ErrorCode.NONE if self.uses_consumer_protocol else self.validate_delete()

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        is_transactional: bool,
        version: int,  # noqa: ARG002  any version is accepted
    ) -> ErrorCode:
        """Return why the member may not commit. ``offset_commit`` and ``txn_offsets`` explain the rules. HOT."""
        if generation < 0:
            if self.state is GroupState.EMPTY:
                return ErrorCode.NONE
            if not member_id and group_instance_id is None:
                return ErrorCode.NONE if is_transactional else ErrorCode.UNKNOWN_MEMBER_ID
        error = self.validate_member(member_id, group_instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        is_unassigned = self.state is GroupState.COMPLETING_REBALANCE and not is_transactional
        return ErrorCode.REBALANCE_IN_PROGRESS if is_unassigned else ErrorCode.NONE

    def permits_late_commit(
        self,
        member_id: str,  # noqa: ARG002
        generation: int,  # noqa: ARG002
        partitions: Iterable[tuple[UUID | None, int]],  # noqa: ARG002
    ) -> bool:
        """Return False: one generation counts for all partitions of a classic group."""
        return False

    def __str__(self) -> str:
        return f"group {self.group_id} in state {self.state}"

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Enter ``state``. Raises IllegalTransition if the table does not permit it."""
        check_transition(self.group_id, self.state, state)
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Return UNKNOWN_MEMBER_ID for a missing member, FENCED_INSTANCE_ID if another one took over its instance id."""
        if group_instance_id is not None:
            current_id = self.static_members.get(group_instance_id)
            if current_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # ------------------------------------------------------------------------------------------------------ members

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member, checked by ``supports``. The first one becomes the leader and sets the group's protocol type."""
        if not self.members:
            self.protocol_type = protocol_type
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_support(member, 1)
        if member.waiting_join is not None:
            self.waiting_joins += 1
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member. If it led, the oldest member becomes the leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_support(member, -1)
            if member.waiting_join is not None:
                self.waiting_joins -= 1
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def update(self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        """Update a member from its new JoinGroup."""
        if protocols != member.protocols:
            self._count_support(member, -1)
            member.protocols = protocols
            self._count_support(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename_static_member(self, member: Member, member_id: str) -> None:
        """Give a static member its new member id. The caller has answered the requests held under the old one."""
        old_id = member.member_id
        del self.members[old_id]
        member.member_id = member_id
        self.members[member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member_id
        if self.leader == old_id:
            self.leader = member_id
        # Kafka keeps awaiting the old id's SyncGroup, and rebalances when that does not come.
        if old_id in self.pending_syncs:
            del self.pending_syncs[old_id]
            self.pending_syncs[member_id] = None

    # ------------------------------------------------------------------------------------------------------ waiting

    def hold_join(self, member: Member, reply: JoinReply) -> None:
        """Keep a member's JoinGroup unanswered."""
        if member.waiting_join is None:
            self.waiting_joins += 1
        member.waiting_join = reply

    def release_join(self, member: Member) -> JoinReply | None:
        """Stop holding a member's JoinGroup. Return its reply, or None if no JoinGroup is held."""
        reply = member.waiting_join
        if reply is not None:
            member.waiting_join = None
            self.waiting_joins -= 1
        return reply

    # ---------------------------------------------------------------------------------------------------- generation

    def begin_generation(self, now_ms: int) -> None:
        """Begin the next generation, now that all members have joined or none are left, and choose its protocol.

        After 2^31 - 1 comes 1. Kafka lets the number become negative, although -1 already means a consumer without a group.
        """
        self.generation = 1 if self.generation == MAX_GENERATION else self.generation + 1
        self.is_assigned = False
        self.pending_syncs.clear()
        self.protocol = self.select_protocol() if self.members else None
        self.refresh_subscribed_topics()
        self.transition_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms)

    def elect_leader(self) -> bool:
        """Make the first joined member the leader if the leader has not joined. Return False if none has joined."""
        if self.leader is None:
            return False
        if self.members[self.leader].waiting_join is not None:
            return True
        joined = next((member for member in self.members.values() if member.waiting_join is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with ``protocols`` fits: the group's type, and one protocol that all members support."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        everybody = len(self.members)
        return self.protocol_type == protocol_type and any(self.supporters.get(name, 0) == everybody for name, _ in protocols)

    def select_protocol(self) -> str:
        """Return the protocol with most votes among those all members support; on a tie, the one voted for first."""
        everybody = len(self.members)
        candidates = {name for name, count in self.supporters.items() if count == everybody}
        if len(candidates) == 1:
            return candidates.pop()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def refresh_subscribed_topics(self) -> None:
        """Read the members' subscriptions for the protocol chosen."""
        self.subscribed_topics = None
        if not self.uses_consumer_protocol or (self.members and self.protocol is None):
            return
        # Many members have the same subscription, which is decoded once.
        subscriptions = {member.metadata(self.protocol) for member in self.members.values()}
        try:
            self.subscribed_topics = frozenset[str]().union(*map(subscribed_topics, subscriptions))
        except MalformedMessage:
            # Members may use a subscription format of their own. Only the expiry and deletion of offsets depend on it here.
            return

    def _count_support(self, member: Member, change: int) -> None:
        # A protocol named twice counts once. Otherwise one member could count for two.
        for name in dict(member.protocols):
            count = self.supporters.get(name, 0) + change
            if count:
                self.supporters[name] = count
            else:
                del self.supporters[name]
