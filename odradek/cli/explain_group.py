"""``odradek groups explain``: why the members of a group have their partitions, from the log of any broker.

The group's records in ``__consumer_offsets`` are read in log order. For each target assignment the command shows the changes
since the one before, the partitions that move, and why they move (``explanations``). It also shows how long the old owner
kept each of them.

For a share group it shows the partitions that each member got or lost (``explain_share_group``), for a streams group the tasks
that moved (``explain_streams_group``).

The log does not say whether a missing member left or was silent for too long, so the explanation only says that it is gone. A
compacted log lacks the state before its first target assignment.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.cluster import Cluster, Refused, patiently
from odradek.cli.described_group import DescribedGroup, describe_group
from odradek.cli.explain_share_group import ShareGroupStory
from odradek.cli.explain_streams_group import StreamsGroupStory
from odradek.cli.group_story import ExplainedMove, Explanation, GroupStory, Partition
from odradek.cli.internal_topic import read_partition
from odradek.cli.options import asks_a_broker, show_json
from odradek.coordinator.group.assignor.spec import GroupSpec, MemberSubscription
from odradek.coordinator.group.consumer.explanations import moves
from odradek.coordinator.group.consumer.member import KEYS, LEAVE_STATIC_EPOCH
from odradek.coordinator.group.streams.explanations import TaskId
from odradek.protocol.coordinator_records import (
    ConsumerGroupKey,
    ShareGroupKey,
    StreamsGroupKey,
    decode_group_key,
    decode_value,
)
from odradek.protocol.coordinator_records.consumer_groups import ConsumerGroupRegularExpressionKey
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.hashing import partition_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.protocol.coordinator_records.consumer_groups import (
        ConsumerGroupCurrentMemberAssignmentValue,
        ConsumerGroupMemberMetadataValue,
        ConsumerGroupPartitionMetadataKey,
        ConsumerGroupRegularExpressionValue,
        ConsumerGroupTargetAssignmentMemberValue,
    )
    from odradek.protocol.message_types.metadata import MetadataResponseTopic

Targets = dict[str, dict["UUID", frozenset[int]]]


class ConsumerGroupStory(GroupStory):
    """A consumer group as its records describe it. ``topic_ids`` are those of the existing topics, by name."""

    def __init__(self, topic_ids: Mapping[str, UUID]) -> None:
        super().__init__(KEYS)
        self._topic_ids = topic_ids

    def _forget(self) -> None:
        super()._forget()
        self._regexes: dict[str, tuple[str, ...]] = {}
        self._targets: Targets = {}
        # The targets of the last assignment, and of the members that are gone since.
        self._previous: Targets = {}
        # Members that were asked to give up partitions, and when.
        self._asked_ms: dict[str, int] = {}
        # Since the last target assignment: removed static members by instance id, and their successors.
        self._gone: dict[str, str] = {}
        self._successors: dict[str, str] = {}

    def _take_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None, at_ms: int) -> None:
        changes, old = self._changes, self._members.get(member_id)
        if value is None:
            if old is not None:
                del self._members[member_id]
                changes.append(_gone(member_id, old, self._asked_ms.pop(member_id, None), at_ms))
                if old.instance_id is not None:
                    self._gone[old.instance_id] = member_id
                self._release(member_id, set(), at_ms)
            return
        if old is None:
            former = self._gone.pop(value.instance_id or "", None)
            if former is None:
                changes.append(f"{member_id} joined")
            else:
                # The static member's former id was removed to make way.
                changes[:] = [each for each in changes if not each.startswith(f"{former} is gone")]
                changes.append(f"static member {value.instance_id} came back as {member_id}, replacing {former}")
                self._successors[former] = member_id
        elif _subscription(old) != _subscription(value):
            changes.append(f"{member_id} subscribes to {_subscribed(value)}, previously to {_subscribed(old)}")
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
                self._changes.append(f"static member {member_id} is away and keeps its partitions")
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
        if target:
            self._previous[member_id] = target

    def _take_other(
        self,
        key: ConsumerGroupRegularExpressionKey | ConsumerGroupPartitionMetadataKey,
        value: ConsumerGroupRegularExpressionValue | None,
    ) -> None:
        if not isinstance(key, ConsumerGroupRegularExpressionKey):
            return
        regex = key.regular_expression
        known = self._regexes.pop(regex, None)
        if value is None:
            return
        self._regexes[regex] = value.topics
        if set(known or ()) != set(value.topics):
            self._changes.append(f"the regular expression {regex} matches {', '.join(value.topics) or 'no topic'}")

    def _moves(self) -> list[ExplainedMove]:
        existing = set(self._topic_ids.values())
        return [
            ExplainedMove((move.topic_id, move.partition), move.source, move.target, move.reason.value)
            for move in moves(self._previous, self._spec(), self._targets, self._successors, existing)
        ]

    def _keep_targets(self) -> None:
        self._previous = {member_id: dict(target) for member_id, target in self._targets.items()}
        self._gone = {}
        self._successors = {}

    def _spec(self) -> GroupSpec:
        members = {}
        for member_id, member in self._members.items():
            names = {*member.subscribed_topic_names, *self._regexes.get(member.subscribed_topic_regex or "", ())}
            ids = frozenset(self._topic_ids[name] for name in names if name in self._topic_ids)
            members[member_id] = MemberSubscription(topic_ids=ids, assignment={})
        return GroupSpec(members=members, topics={}, is_homogeneous=False)


def _subscription(member: ConsumerGroupMemberMetadataValue) -> tuple[frozenset[str], str]:
    return frozenset(member.subscribed_topic_names), member.subscribed_topic_regex or ""


def _subscribed(member: ConsumerGroupMemberMetadataValue) -> str:
    names = sorted(member.subscribed_topic_names)
    return ", ".join([*names, *([member.subscribed_topic_regex] if member.subscribed_topic_regex else [])]) or "nothing"


def _gone(member_id: str, member: ConsumerGroupMemberMetadataValue, asked_ms: int | None, at_ms: int) -> str:
    """Return a line about a removed member. The broker's log has more."""
    if asked_ms is not None and at_ms - asked_ms >= member.rebalance_timeout_ms >= 0:
        timeout = f"its rebalance timeout is {member.rebalance_timeout_ms} ms"
        return f"{member_id} is gone, {at_ms - asked_ms} ms after it was asked to give partitions up; {timeout}"
    return f"{member_id} is gone"


_OFFSETS_TOPIC = "__consumer_offsets"


@click.command()
@click.argument("group")
@asks_a_broker
@click.option(
    "--last", type=click.IntRange(1), default=10, show_default=True, help="Number of target assignments to show, the newest ones."
)
def explain(group: str, bootstrap: list[tuple[str, int]], as_json: bool, last: int) -> int:
    """Explain why the members of a group have their partitions or tasks: what changed, what moved, and why.

    It reads the group's records on __consumer_offsets, of odradek or of Apache Kafka. Records removed by compaction are
    missing. In classic groups the members decide, and their records do not say why.
    """
    with Cluster(bootstrap) as cluster:
        topics = cluster.metadata(None)
        try:
            story = patiently(lambda: _read(cluster, topics, group))
        except MalformedMessage as error:
            raise click.ClickException(f"cannot read the records of group {group}: {error}") from error
        if not story.is_there:
            click.echo(_unexplained(describe_group(cluster, group)), err=True)
            return 2
    names = {topic.topic_id: str(topic.name) for topic in topics if topic.topic_id is not None}
    documents = [_as_document(each, names) for each in story.explanations[-last:]]
    if as_json:
        show_json({"group": group, "assignments": documents})
    else:
        click.echo("\n".join(map(_as_text, documents)))
    return 0


def _unexplained(group: DescribedGroup) -> str:
    """Return the reason why an existing group has no target assignment in the log."""
    if group.group_type != "classic":
        return f"{group.group} has no target assignment in {_OFFSETS_TOPIC} yet: try again"
    if not group.protocol_type:
        return f"{group.group} has committed offsets only: no member has joined it, so nothing was assigned"
    return f"{group.group} is a classic group: its members assign the partitions themselves, and no record says why"


def _read(cluster: Cluster, topics: list[MetadataResponseTopic], group: str) -> GroupStory:
    """Return the group's story, whichever kind it is. Raises Refused, MalformedMessage."""
    count = next((len(topic.partitions) for topic in topics if topic.name == _OFFSETS_TOPIC), 0)
    if not count:
        raise Refused(group, ErrorCode.GROUP_ID_NOT_FOUND)
    ids = {str(topic.name): topic.topic_id for topic in topics if topic.topic_id is not None}
    consumer_story = ConsumerGroupStory(ids)
    share_story = ShareGroupStory({topic_id: name for name, topic_id in ids.items()})
    streams_story = StreamsGroupStory()
    for record in read_partition(cluster, (_OFFSETS_TOPIC, partition_for(group, count))):
        key = decode_group_key(record.key or b"")
        if isinstance(key, ConsumerGroupKey | ShareGroupKey | StreamsGroupKey) and key.group == group:
            story: GroupStory = consumer_story
            if not isinstance(key, ConsumerGroupKey):
                story = share_story if isinstance(key, ShareGroupKey) else streams_story
            story.take(key, decode_value(key, record.value), record.timestamp)
    return next((each for each in (share_story, streams_story) if each.is_there), consumer_story)


def _as_document(explanation: Explanation, names: dict[UUID, str]) -> dict[str, Any]:
    moves = explanation.moves
    return {
        "epoch": explanation.epoch,
        "time": datetime.fromtimestamp(explanation.at_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        "changes": explanation.changes,
        "moves": None if moves is None else [_move(each, names) for each in moves],
    }


def _move(each: ExplainedMove, names: dict[UUID, str]) -> dict[str, Any]:
    shown: dict[str, Any]
    if isinstance(each.what, TaskId):
        shown = {"task": str(each.what), "role": each.role}
    else:
        topic_id, index = each.what
        shown = {"topic": names.get(topic_id, str(topic_id)), "partition": index}
    return {**shown, "from": each.source, "to": each.target, "reason": each.reason, "kept_ms": each.kept_ms}


def _as_text(document: dict[str, Any]) -> str:
    changes = "; ".join(document["changes"]) or "the log does not say why"
    lines = [f"epoch {document['epoch']}, {document['time']}: {changes}"]
    if document["moves"] is None:
        lines.append("  earlier records are no longer in the log")
    elif not document["moves"]:
        lines.append("  nothing moves")
    for move in document["moves"] or ():
        kept = "" if move["kept_ms"] is None else f", given up after {move['kept_ms']} ms"
        what = f"{move['role']} task {move['task']}" if "task" in move else f"{move['topic']}-{move['partition']}"
        lines.append(f"  {what} from {move['from'] or 'nobody'} to {move['to'] or 'nobody'}: {move['reason']}{kept}")
    return "\n".join(lines)
