"""Static membership (KIP-345): a member that comes back under its group.instance.id takes its former place.

The member gets a new member id. Requests under the former id, held ones included, get FENCED_INSTANCE_ID. A stable group whose
protocol stays the same does not rebalance. Its record gets the new member id, and the member is answered with the current
generation. Since version 9, a returning leader is told that it leads and must not assign again (KIP-814).
"""

from typing import Final

from odradek.coordinator.group.classic.decision import Decision, join_error, joined, joined_in_place_of, sync_error
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.groups import ClassicGroups
from odradek.coordinator.group.classic.member import JoinReply, Member, Protocols
from odradek.coordinator.group.classic.rebalance import complete_if_all_joined, hold_join, prepare
from odradek.coordinator.group.classic.rebalance_notes import RebalanceCause
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.classic.stored import group_record
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.join_group import JoinGroupRequest, JoinGroupResponse

_SKIP_ASSIGNMENT_SINCE: Final = 9


class Replacement:
    """The return of one static member: its former id, its new id, and its former values."""

    def __init__(self, groups: ClassicGroups, group: ClassicGroup, old_id: str, new_id: str, version: int) -> None:
        self._groups = groups
        self._group = group
        self._old_id = old_id
        self._new_id = new_id
        self._version = version
        self._member: Member = group.members[old_id]
        self._old_leader = group.leader or ""
        self._old_protocols = self._member.protocols
        self._old_rebalance_timeout_ms = self._member.rebalance_timeout_ms
        self._old_session_timeout_ms = self._member.session_timeout_ms

    def decide(self, request: JoinGroupRequest, protocols: Protocols, reason: str, reply: JoinReply, decision: Decision) -> None:
        """Fence the former member, put the new one in its place, and rebalance if that is unavoidable."""
        group = self._group
        member = self._member
        decision.answer(group.release_join(member), join_error(ErrorCode.FENCED_INSTANCE_ID, self._old_id))
        decision.answer(member.waiting_sync, sync_error(ErrorCode.FENCED_INSTANCE_ID))
        member.waiting_sync = None
        member.is_new = False
        self._rename(self._old_id, self._new_id)
        group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
        self._groups.sessions.begin(group, member)
        hold_join(self._groups, group, member, reply, decision)
        who = f"static member {member.group_instance_id} came back as {self._new_id}"
        if group.state is GroupState.PREPARING_REBALANCE:
            complete_if_all_joined(self._groups, group, decision)
        elif group.state is GroupState.STABLE and group.select_protocol() == group.protocol:
            self._write(reply, decision)
        else:
            # In CompletingRebalance, the leader may be assigning to the former member id right now.
            how = (
                "with protocols that change the group's"
                if group.state is GroupState.STABLE
                else "before it was assigned anything"
            )
            why = f"{who} {how}; its client's reason: {reason}"
            prepare(self._groups, group, RebalanceCause.STATIC_MEMBER_CHANGED, why, decision)

    def _write(self, reply: JoinReply, decision: Decision) -> None:
        group = self._group
        group.refresh_subscribed_topics()
        generation = group.generation
        decision.records.append(group_record(group, {member.member_id: member.assignment for member in group.members.values()}))

        def answer() -> None:
            self._report()
            # If a rebalance began meanwhile, this JoinGroup belongs to it and is answered at its end.
            is_current = group.state is GroupState.STABLE and group.generation == generation
            if is_current and self._member.waiting_join is reply:
                decision.answer(group.release_join(self._member), self._response())
                self._groups.sessions.touch(group, self._member)

        def revert(_: KafkaError) -> None:
            # If a later generation was formed since the member came back, the member stays in that one.
            if group.members.get(self._new_id) is not self._member or group.generation != generation:
                return
            self._rename(self._new_id, self._old_id)
            group.update(self._member, self._old_protocols, self._old_rebalance_timeout_ms, self._old_session_timeout_ms)
            group.refresh_subscribed_topics()
            self._groups.sessions.begin(group, self._member)

        decision.on_commit(answer)
        decision.on_failure(revert)

    def _report(self) -> None:
        self._groups.reports.info(
            "a static member came back",
            group=self._group.group_id,
            generation=self._group.generation,
            instance_id=self._member.group_instance_id,
            former=self._old_id,
            member=self._new_id,
        )

    def _response(self) -> JoinGroupResponse:
        if self._version < _SKIP_ASSIGNMENT_SINCE:
            return joined_in_place_of(self._group, self._new_id, self._old_leader)
        return joined(self._group, self._new_id, skip_assignment=self._group.leader == self._new_id)

    def _rename(self, old_id: str, new_id: str) -> None:
        group = self._group
        self._groups.sessions.end(group, old_id)
        group.rename_static_member(self._member, new_id)
        if old_id in group.settled_members:
            group.settled_members = group.settled_members - {old_id} | {new_id}
