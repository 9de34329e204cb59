"""JoinGroup: decides whether the member may join, under which id, and whether a rebalance begins.

A JoinGroup with a member id comes from a *known* member, which must be in the group and not fenced. By the group's state:

    Empty                 UNKNOWN_MEMBER_ID: an empty group has no members
    PreparingRebalance    its JoinGroup waits with the others
    CompletingRebalance   gets the current generation, as the first answer may be lost; a changed member rebalances
    Stable                the same, and the leader rebalances

Without a member id, a static member replaces its predecessor (``Replacement``). A dynamic member of version 4 or newer gets a
member id and the error MEMBER_ID_REQUIRED (KIP-394). An older one becomes a member with its first JoinGroup.

Static membership (KIP-345): a member that comes back under its group.instance.id takes its former place.

The member gets a new member id. Requests under the former id, held ones included, get FENCED_INSTANCE_ID. A stable group whose
protocol stays the same does not rebalance. Its record gets the new member id, and the member is answered with the current
generation. Since version 9, a returning leader is told that it leads and must not assign again (KIP-814).
"""

from functools import partial
from typing import Final

from odradek.coordinator.group.classic.decision import Decision, join_error, joined, joined_in_place_of, sync_error
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.groups import ClassicGroups, group_record, new_group_record
from odradek.coordinator.group.classic.member import JoinReply, Member, Protocols
from odradek.coordinator.group.classic.rebalance import complete_if_all_joined, give_up, go_on, hold_join, prepare
from odradek.coordinator.group.classic.states import GroupState, RebalanceCause, can_rebalance
from odradek.coordinator.group.config import MemberContext
from odradek.coordinator.runtime.result import DEFERRED_RESPONSE, CoordinatorResult
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


_MEMBER_ID_REQUIRED_SINCE: Final = 4
# The reason is free text of the client, for the log. It is cut to the length that the Java client sends (KIP-800).
_REASON_LENGTH: Final = 255


def join_group(
    groups: ClassicGroups, context: MemberContext, request: JoinGroupRequest, reply: JoinReply
) -> CoordinatorResult[JoinGroupResponse]:
    """Decide on a JoinGroup; ``reply`` is answered by this result, or by the one that ends the rebalance."""
    decision = Decision()
    config = groups.config()
    group = groups.find(request.group_id)
    error = ErrorCode.NONE
    if not request.group_id:
        error = ErrorCode.INVALID_GROUP_ID
    elif not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        error = ErrorCode.INVALID_SESSION_TIMEOUT
    elif group is None and groups.is_kept_out(request.group_id):
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    elif group is None and request.member_id:
        error = ErrorCode.UNKNOWN_MEMBER_ID
    if error is not ErrorCode.NONE:
        _log_refusal(groups, request, error)
        member_id = "" if error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL else request.member_id
        decision.answer(reply, join_error(error, member_id))
        return decision.result(DEFERRED_RESPONSE)
    is_stored = groups.is_stored(request.group_id)
    if group is None:
        if is_stored:
            decision.records += groups.tombstones_of_other(request.group_id)
            is_stored = False
        group = groups.create(request.group_id)
    written = len(decision.records)
    _Join(groups, group, context, request, reply, decision).decide(config.group_max_size)
    if not is_stored and len(decision.records) == written:
        _write_new_group(groups, group, decision)
    return decision.result(DEFERRED_RESPONSE)


def _write_new_group(groups: ClassicGroups, group: ClassicGroup, decision: Decision) -> None:
    """Append the record of a new group, which has no generation yet."""
    decision.records.append(new_group_record(group))
    decision.on_failure(partial(give_up, groups, group, decision))


def _log_refusal(groups: ClassicGroups, request: JoinGroupRequest, code: ErrorCode) -> None:
    groups.reports.info(
        "a JoinGroup was refused",
        group=request.group_id,
        member=request.member_id,
        instance_id=request.group_instance_id,
        error=code.name,
    )


class _Join:
    """One JoinGroup for one group."""

    def __init__(
        self,
        groups: ClassicGroups,
        group: ClassicGroup,
        context: MemberContext,
        request: JoinGroupRequest,
        reply: JoinReply,
        decision: Decision,
    ) -> None:
        self._groups = groups
        self._group = group
        self._context = context
        self._request = request
        self._reply = reply
        self._decision = decision
        self._protocols: Protocols = tuple((protocol.name, protocol.metadata) for protocol in request.protocols)

    def decide(self, max_size: int) -> None:
        """Answer or hold the JoinGroup, and rebalance if needed."""
        group = self._group
        member_id = self._request.member_id
        if not self._has_room(max_size):
            # A pending or late member is removed if the group is full, so that the others do not wait for it.
            group.remove(member_id)
            self._groups.sessions.end(group, member_id)
            self._refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
            complete_if_all_joined(self._groups, group, self._decision)
        elif not group.supports(self._request.protocol_type, self._protocols):
            self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        elif not member_id:
            self._join_new()
        elif member_id in group.pending_joins and self._request.group_instance_id is None:
            self._add(member_id, "joined with the member id it was given")
        else:
            self._join_known()

    def _has_room(self, max_size: int) -> bool:
        """Return whether group.max.size lets the member in.

        During a rebalance the limit counts held JoinGroups. It may have been lowered, and then the last to join are refused.
        Otherwise it counts members.
        """
        group = self._group
        if group.state is GroupState.EMPTY:
            return True
        member = group.members.get(self._request.member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            return (member is not None and member.waiting_join is not None) or group.waiting_joins < max_size
        return member is not None or len(group.members) < max_size

    def _join_new(self) -> None:
        group = self._group
        instance_id = self._request.group_instance_id
        member_id = f"{self._context.client_id if instance_id is None else instance_id}-{self._groups.new_id()}"
        if instance_id is not None:
            old_id = group.static_members.get(instance_id)
            if old_id is None:
                self._add(member_id, f"joined under the instance id {instance_id}")
            else:
                replacement = Replacement(self._groups, group, old_id, member_id, self._context.version)
                replacement.decide(self._request, self._protocols, self._reason(), self._reply, self._decision)
        elif self._context.version >= _MEMBER_ID_REQUIRED_SINCE:
            self._groups.sessions.begin_pending(group, member_id, self._request.session_timeout_ms)
            self._decision.on_failure(lambda _: self._drop_pending(member_id))
            self._answer(join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(member_id, "joined without a member id")

    def _join_known(self) -> None:
        group = self._group
        member_id = self._request.member_id
        error = group.validate_member(member_id, self._request.group_instance_id)
        if error is not ErrorCode.NONE:
            self._refuse(error, member_id)
            return
        member = group.members[member_id]
        has_changed = member.protocols != self._protocols
        if group.state is GroupState.PREPARING_REBALANCE:
            self._rejoin(member, RebalanceCause.MEMBER_REJOINED, "joined during the rebalance")
        elif has_changed:
            self._rejoin(member, RebalanceCause.MEMBER_CHANGED, "joined with other protocols")
        elif group.state is GroupState.STABLE and group.leader == member_id:
            # The leader may request a rebalance at any time, as it sees changes that the coordinator does not, such as new
            # partitions.
            self._rejoin(member, RebalanceCause.LEADER_REJOINED, "joined again")
        else:
            self._groups.sessions.touch(group, member)
            self._answer(joined(group, member_id))

    def _add(self, member_id: str, how: str) -> None:
        group = self._group
        request = self._request
        member = Member(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=self._context.client_id,
            client_host=self._context.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=self._protocols,
            is_new=True,
            is_nameless=not request.member_id,
        )
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.new_member_added = True
        pending_deadline_ms = group.pending_joins.get(member_id)
        group.add(member, request.protocol_type)
        hold_join(self._groups, group, member, self._reply, self._decision)
        self._groups.sessions.begin_join(group, member, pending_deadline_ms)
        self._rebalance(RebalanceCause.MEMBER_ADDED, member_id, how)

    def _rejoin(self, member: Member, cause: RebalanceCause, how: str) -> None:
        request = self._request
        self._group.update(member, self._protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
        # The member gave up the connection of its earlier JoinGroup. Kafka never answers that request.
        self._decision.answer(member.waiting_join, join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        hold_join(self._groups, self._group, member, self._reply, self._decision)
        self._rebalance(cause, member.member_id, how)

    def _drop_pending(self, member_id: str) -> None:
        # The client never learned this member id, so no JoinGroup will use it.
        group = self._group
        if self._groups.is_live(group) and member_id in group.pending_joins:
            group.remove(member_id)
            self._groups.sessions.end(group, member_id)
            go_on(self._groups, group)

    def _rebalance(self, cause: RebalanceCause, member_id: str, how: str) -> None:
        """Begin a rebalance, or continue the one under way."""
        group = self._group
        if can_rebalance(group.state):
            who = "the leader" if cause is RebalanceCause.LEADER_REJOINED else "member"
            why = f"{who} {member_id} {how} while the group was {group.state}; its client's reason: {self._reason()}"
            prepare(self._groups, group, cause, why, self._decision)
        else:
            complete_if_all_joined(self._groups, group, self._decision)

    def _reason(self) -> str:
        return (self._request.reason or "not provided")[:_REASON_LENGTH]

    def _refuse(self, code: ErrorCode, member_id: str) -> None:
        _log_refusal(self._groups, self._request, code)
        self._answer(join_error(code, member_id))

    def _answer(self, response: JoinGroupResponse) -> None:
        self._decision.answer(self._reply, response)
