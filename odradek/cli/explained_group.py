"""Why the members of a consumer group have the partitions that they have: what its records in ``__consumer_offsets`` say.

The records of any broker are read in the order of the log. Each target assignment is explained: what had changed since the one
before, which partitions move, and why they have to (``assignor.moves``); then, how long each was kept by who gave it up.

The log does not say whether a member that is gone left, or was silent for too long. So the explanation says that it is gone.
Nor does a log that was compacted say what was before its first target assignment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from odradek.coordinator.group.assignor.moves import Move, moves
from odradek.coordinator.group.assignor.spec import GroupSpec, MemberSubscription
from odradek.coordinator.group.consumer.group import INITIAL_EPOCH
from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.protocol.coordinator_records.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.protocol.coordinator_records import ConsumerGroupKey, ConsumerGroupValue

Partition = tuple["UUID", int]
Targets = dict[str, dict["UUID", frozenset[int]]]


@dataclass(slots=True)
class ExplainedMove:
    """``kept_ms``: from the target assignment until the source had given the partition up. None while it has not."""

    move: Move
    kept_ms: int | None = None


@dataclass(slots=True)
class Explanation:
    """Of one target assignment; ``at_ms`` is since the epoch. ``moves`` is None where what was before is not in the log."""

    epoch: int
    at_ms: int
    changes: list[str]
    moves: list[ExplainedMove] | None


@dataclass(slots=True)
class _Epoch:
    """What was read since the last target assignment. ``gone`` has the ids of static members, by instance id."""

    changes: list[str] = field(default_factory=list)
    gone: dict[str, str] = field(default_factory=dict)
    departed: Targets = field(default_factory=dict)
    successors: dict[str, str] = field(default_factory=dict)


class GroupStory:
    """A group as its records tell it. ``topic_ids`` are those of the topics that there are, by name."""

    def __init__(self, topic_ids: Mapping[str, UUID]) -> None:
        self.explanations: list[Explanation] = []
        self._topic_ids = topic_ids
        self._forget()

    @property
    def is_there(self) -> bool:
        """Whether there is such a group at the end of the log."""
        return self._hash is not None

    def _forget(self) -> None:
        self._members: dict[str, ConsumerGroupMemberMetadataValue] = {}
        self._regexes: dict[str, tuple[str, ...]] = {}
        self._targets: Targets = {}
        # The targets of the last assignment, None where the log does not have it.
        self._previous: Targets | None = None
        self._held: dict[str, set[Partition]] = {}
        # Members that were asked to give partitions up, and since when.
        self._asked_ms: dict[str, int] = {}
        self._hash: int | None = None
        self._since = _Epoch()

    def take(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None, at_ms: int) -> None:
        """The next record of the group, written at ``at_ms``."""
        if isinstance(key, ConsumerGroupMemberMetadataKey):
            self._take_member(key.member_id, cast("ConsumerGroupMemberMetadataValue | None", value), at_ms)
        elif isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            self._take_assignment(key.member_id, cast("ConsumerGroupCurrentMemberAssignmentValue | None", value), at_ms)
        elif isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
            self._take_target(key.member_id, cast("ConsumerGroupTargetAssignmentMemberValue | None", value))
        elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
            if value is not None:
                self._explain(cast("ConsumerGroupTargetAssignmentMetadataValue", value).assignment_epoch, at_ms)
        elif isinstance(key, ConsumerGroupRegularExpressionKey):
            self._take_regex(key.regular_expression, cast("ConsumerGroupRegularExpressionValue | None", value))
        elif isinstance(key, ConsumerGroupMetadataKey):
            self._take_epoch(cast("ConsumerGroupMetadataValue | None", value))

    def _take_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None, at_ms: int) -> None:
        changes, old = self._since.changes, self._members.get(member_id)
        if value is None:
            if old is not None:
                del self._members[member_id]
                changes.append(_gone(member_id, old, self._asked_ms.pop(member_id, None), at_ms))
                if old.instance_id is not None:
                    self._since.gone[old.instance_id] = member_id
                self._release(member_id, set(), at_ms)
            return
        if old is None:
            former = self._since.gone.pop(value.instance_id or "", None)
            if former is None:
                changes.append(f"{member_id} joined")
            else:
                # Its former self was removed to make way.
                changes[:] = [each for each in changes if not each.startswith(f"{former} is gone")]
                changes.append(f"static member {value.instance_id} is back, {member_id} in place of {former}")
                self._since.successors[former] = member_id
        elif _subscription(old) != _subscription(value):
            changes.append(f"{member_id} subscribes to {_subscribed(value)}, before to {_subscribed(old)}")
        elif old.server_assignor != value.server_assignor:
            changes.append(f"{member_id} prefers the assignor {value.server_assignor}")
        self._members[member_id] = value

    def _take_assignment(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None, at_ms: int) -> None:
        held: set[Partition] = set()
        pending: set[Partition] = set()
        if value is not None:
            pending = {(owned.topic_id, index) for owned in value.partitions_pending_revocation for index in owned.partitions}
            held = pending | {(owned.topic_id, index) for owned in value.assigned_partitions for index in owned.partitions}
            if value.member_epoch == LEAVE_STATIC_EPOCH:
                self._since.changes.append(f"static member {member_id} is away, and keeps what it has")
            if pending:
                self._asked_ms.setdefault(member_id, at_ms)
            else:
                self._asked_ms.pop(member_id, None)
        if value is not None or member_id not in self._members:
            self._release(member_id, held, at_ms)
        self._held[member_id] = held

    def _take_target(self, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None) -> None:
        if value is not None:
            self._targets[member_id] = {topic_id: frozenset(indexes) for topic_id, indexes in value.topic_partitions}
            return
        target = self._targets.pop(member_id, None)
        if target and self._previous is not None:
            self._previous.pop(member_id, None)
            self._since.departed[member_id] = target

    def _take_regex(self, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        known = self._regexes.pop(regex, None)
        if value is None:
            return
        self._regexes[regex] = value.topics
        if set(known or ()) != set(value.topics):
            self._since.changes.append(f"the regular expression {regex} matches {', '.join(value.topics) or 'no topic'}")

    def _take_epoch(self, value: ConsumerGroupMetadataValue | None) -> None:
        if value is None:
            self._forget()
            return
        if not self._since.changes and self._hash is not None and self._hash != value.metadata_hash:
            self._since.changes.append("its topics have changed: which there are, or their partitions")
        self._hash = value.metadata_hash

    def _explain(self, epoch: int, at_ms: int) -> None:
        if self._hash is None or (epoch == INITIAL_EPOCH and not self._members):
            return
        since, self._since = self._since, _Epoch()
        found: list[ExplainedMove] | None = None
        if self._previous is not None or epoch == INITIAL_EPOCH + 1:
            before = {**since.departed, **(self._previous or {})}
            existing = set(self._topic_ids.values())
            found = [ExplainedMove(move) for move in moves(before, self._spec(), self._targets, since.successors, existing)]
        self._previous = {member_id: dict(target) for member_id, target in self._targets.items()}
        self.explanations.append(Explanation(epoch, at_ms, since.changes, found))

    def _spec(self) -> GroupSpec:
        members = {}
        for member_id, member in self._members.items():
            names = {*member.subscribed_topic_names, *self._regexes.get(member.subscribed_topic_regex or "", ())}
            ids = frozenset(self._topic_ids[name] for name in names if name in self._topic_ids)
            members[member_id] = MemberSubscription(topic_ids=ids, assignment={})
        return GroupSpec(members=members, topics={}, is_homogeneous=False)

    def _release(self, member_id: str, held: set[Partition], at_ms: int) -> None:
        """A member has no more than ``held`` from now on."""
        released = self._held.pop(member_id, set()) - held
        if not released or not self.explanations:
            return
        last = self.explanations[-1]
        for each in last.moves or ():
            move = each.move
            if move.source == member_id and each.kept_ms is None and (move.topic_id, move.partition) in released:
                each.kept_ms = at_ms - last.at_ms


def _subscription(member: ConsumerGroupMemberMetadataValue) -> tuple[frozenset[str], str]:
    return frozenset(member.subscribed_topic_names), member.subscribed_topic_regex or ""


def _subscribed(member: ConsumerGroupMemberMetadataValue) -> str:
    names = sorted(member.subscribed_topic_names)
    return ", ".join([*names, *([member.subscribed_topic_regex] if member.subscribed_topic_regex else [])]) or "nothing"


def _gone(member_id: str, member: ConsumerGroupMemberMetadataValue, asked_ms: int | None, at_ms: int) -> str:
    """What is known of a member that is removed: all else is for the broker's log."""
    if asked_ms is not None and at_ms - asked_ms >= member.rebalance_timeout_ms >= 0:
        timeout = f"its rebalance timeout is {member.rebalance_timeout_ms} ms"
        return f"{member_id} is gone, {at_ms - asked_ms} ms after it was asked to give partitions up; {timeout}"
    return f"{member_id} is gone"
