"""Rows from the records of one consumer or share group (KIP-848, KIP-932), read in log order: generations, changes, moves.

The coordinator does not write such a group as a whole, but a record for each thing that changes:

    metadata             the group's epoch, which rises whenever a new assignment is needed
    member_metadata      a member: its client, its subscription; a tombstone when it is gone
    target_assignment    the target of each member, and the epoch of that assignment
    current_assignment   the partitions that each member has, and those that it was asked to give up
    regular_expression   the topics that match an expression

A ``GroupStory`` keeps the resulting state, and makes rows (``take``). A generation is an assignment that is complete, or a
group that has become empty. A change is a member that joins or goes. A move is a partition that another member takes over; it
has the time for which the old owner kept the partition after it was asked to give it up.

Records say that a member is gone, and mostly not why. Only two facts are certain. A static member that leaves temporarily
writes epoch -2. A static member that is gone without this epoch was removed, or its session expired.

The records of share groups are the same, without static members, regular expressions, assignors and partitions to give up. The
members of a share group may have a partition together, so there are no moves.

A place is ``TOPIC_ID:PARTITION``. Records name topics by id; ``names`` has the known names.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from odradek.pipeline.schema import CONSUMER, CONSUMER_GROUP_PREFIX, GROUP_METADATA, SHARE, SHARE_GROUP_PREFIX, topic_of_id
from odradek.pipeline.tables.stories import Json, Record, Row

_AWAY_EPOCH = -2
_STABLE = 0
_GONE = ("gone", "expired")
# A change of a member whose group becomes a classic one. If the member is in the classic group, it is not gone.
CONVERTED = "converted"
# The fields that the records of share groups do not have.
_NOT_OF_SHARERS = {"instance_id": None, "subscribed_topic_regex": None, "server_assignor": None, "rebalance_timeout_ms": None}
_TOPICS_OF_STATES = ("initializing_topics", "initialized_topics", "deleting_topics")
# The most changes that the reason of a generation names; the rest is counted.
_NAMED = 20


@dataclass(slots=True)
class _Group:
    """The state that later records may need; JSON between two passes."""

    group_type: str = CONSUMER
    epoch: int | None = None
    raised_us: int | None = None
    metadata_hash: int | None = None
    assignment_epoch: int = 0
    # The last generation's time, and the names of its members; None if no generation is known.
    generation_us: int | None = None
    known_by: list[str] | None = None
    members: dict[str, Json] = field(default_factory=dict)
    # By member: epoch, state, last record, since when it is asked to give something up, since when it is away.
    standing: dict[str, Json] = field(default_factory=dict)
    held: dict[str, set[str]] = field(default_factory=dict)
    targets: dict[str, set[str]] = field(default_factory=dict)
    # The last owner of each place: member_id, known_by, client_id, asked_us, kept_ms.
    owners: dict[str, Json] = field(default_factory=dict)
    regexes: dict[str, list[str]] = field(default_factory=dict)
    # Names of topics, from the records of Kafka before 4.1.
    names: dict[str, str] = field(default_factory=dict)
    # Members whose records are being removed: their standing and partitions.
    leaving: dict[str, Json] = field(default_factory=dict)
    # The time this group was last a classic group, if it was one, and its generation then.
    converted_us: int | None = None
    converted_epoch: int | None = None
    # Changes of members that no epoch has followed yet, and reasons for the next generation.
    changes: list[Json] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    newest: Json = field(default_factory=dict)


class GroupStory:
    """The group ``name``. ``names`` are the known topics, by id."""

    def __init__(self, name: str, names: Mapping[str, str]) -> None:
        self._name, self._names = name, names
        self._group = _Group()
        self._rows: list[Row] = []
        self._record = Record("", False, {}, 0, 0, 0)

    @classmethod
    def resumed(cls, name: str, names: Mapping[str, str], state: str) -> Self:
        """Return the story with the ``state`` that an earlier story returned."""
        story = cls(name, names)
        group = story._group
        for key, value in json.loads(state).items():
            setattr(group, key, value)
        for places in (group.held, group.targets):
            places.update({member_id: set(each) for member_id, each in places.items()})
        return story

    def state(self) -> str | None:
        """Return everything that a later pass needs; None if there is no such group."""
        group = self._group
        if group.epoch is None and not (group.members or group.standing or group.targets or group.regexes):
            return None
        return json.dumps({each.name: getattr(group, each.name) for each in fields(_Group)}, default=sorted, sort_keys=True)

    def take(self, record: Record) -> list[Row]:
        """Apply the next record, and return its rows."""
        self._rows, self._record = [], record
        value = None if record.is_tombstone else record.fields
        member_id = record.fields.get("member_id", "")
        if record.kind.startswith(SHARE_GROUP_PREFIX):
            self._group.group_type = SHARE
        match record.kind.removeprefix(CONSUMER_GROUP_PREFIX).removeprefix(SHARE_GROUP_PREFIX):
            case _ if record.kind == GROUP_METADATA:
                self._group.converted_us = record.at_us
            case "metadata":
                self._take_epoch(value)
            case "member_metadata":
                self._take_member(member_id, value)
            case "current_member_assignment":
                self._take_current(member_id, value)
            case "target_assignment_member":
                self._take_target(member_id, value)
            case "target_assignment_metadata" if value is not None:
                self._take_assignment(value["assignment_epoch"])
            case "regular_expression":
                self._take_regex(record.fields["regular_expression"], value)
            case "partition_metadata" if value is not None:
                self._take_names(value["topics"])
            case "state_partition_metadata" if value is not None:
                self._take_names(topic for topics in _TOPICS_OF_STATES for topic in value[topics])
        self._group.newest = self._record.coordinates()
        return self._rows

    def now(self) -> Row:
        """Return the row of ``groups_now``: each member with its present partitions."""
        group = self._group
        members = [
            {
                "member_id": member_id,
                "group_instance_id": member["instance_id"],
                "client_id": member["client_id"],
                "client_host": member["client_host"],
                "rebalance_timeout": member["rebalance_timeout_ms"],
                "session_timeout": _session_timeout(member),
                "topics": sorted(self._subscribed(member)),
                "assignment": self._by_topic(group.held.get(member_id, ())),
            }
            for member_id, member in sorted(group.members.items())
        ]
        told = {"protocol": self._assignor(), "generation": group.assignment_epoch, "members": members, "state": self._state()}
        return self._row("groups_now", protocol_type=self._protocol_type(), group_type=group.group_type, **told, **group.newest)

    # ------------------------------------------------------------------------------------------------------------- records

    def _take_epoch(self, value: Json | None) -> None:
        group = self._group
        if value is None:
            self._tell_converted()
            self._group = _Group()
            return
        if not group.changes and not group.why and group.metadata_hash not in {None, value.get("metadata_hash", 0)}:
            group.why.append("its topics or their partitions have changed")
        group.metadata_hash = value.get("metadata_hash", 0)
        group.epoch, group.raised_us = value["epoch"], self._record.at_us
        self._tell_changes(value["epoch"])
        if not group.members and group.known_by:
            self._tell_empty(value["epoch"])

    def _take_member(self, member_id: str, value: Json | None) -> None:
        group = self._group
        old = group.members.get(member_id)
        if value is None:
            if old is not None:
                del group.members[member_id]
                self._release(member_id, set())
                self._note_gone(member_id, old, group.leaving.pop(member_id, {}))
            return
        if group.group_type == SHARE:
            value = _NOT_OF_SHARERS | value
        group.members[member_id] = value
        named = _named(member_id, value)
        if old is None:
            self._note_came(member_id, value)
        elif _subscription(old) != _subscription(value):
            group.why.append(f"{named} subscribes to {_subscription(value)}, previously to {_subscription(old)}")
        elif old["server_assignor"] != value["server_assignor"]:
            group.why.append(f"{named} prefers the assignor {value['server_assignor']}")

    def _take_current(self, member_id: str, value: Json | None) -> None:
        group, at_us = self._group, self._record.at_us
        before = group.standing.pop(member_id, {})
        if value is None:
            group.leaving[member_id] = before | {"held": sorted(group.held.get(member_id, ()))}
            self._release(member_id, set())
            return
        pending = _places(value.get("partitions_pending_revocation", ()))
        assigned = _places(value["assigned_partitions"])
        is_away = value["member_epoch"] == _AWAY_EPOCH
        group.standing[member_id] = {
            "epoch": value["member_epoch"],
            "state": value["state"],
            "heard_us": at_us,
            "asked_us": (before.get("asked_us") or at_us) if pending else None,
            "away_us": at_us if is_away else None,
        }
        member = group.members.get(member_id)
        if is_away and member is not None:
            told = "a static member left temporarily, with epoch -2, and keeps its partitions"
            self._rows.append(self._change(member_id, member, "away_static", for_left=told, generation=group.epoch))
            group.why.append(f"static member {_named(member_id, member)} is away and keeps its partitions")
        elif before.get("away_us") is not None and member is not None:
            self._rows.append(self._change(member_id, member, "bounced_static", generation=group.epoch))
            group.why.append(f"static member {_named(member_id, member)} is back")
        held = group.held.get(member_id, set())
        self._release(member_id, assigned | pending)
        for place in sorted((assigned | pending) - held) if group.group_type != SHARE else ():
            self._own(place, member_id, value["member_epoch"])

    def _take_target(self, member_id: str, value: Json | None) -> None:
        group = self._group
        if value is None:
            group.targets.pop(member_id, None)
            return
        target = group.targets[member_id] = _places(value["topic_partitions"])
        for place in group.held.get(member_id, ()):
            owner = group.owners.get(place)
            if owner is not None:
                owner["asked_us"] = None if place in target else owner["asked_us"] or self._record.at_us

    def _take_assignment(self, epoch: int) -> None:
        """Handle a complete target assignment: a generation. Epoch 0 is that of a group without any."""
        group = self._group
        group.assignment_epoch = epoch
        if epoch == 0 or not group.members:
            return
        known_by = sorted(_known_by(member_id, member) for member_id, member in group.members.items())
        reason = "first" if group.known_by is None else "assignment" if known_by == group.known_by else "members"
        if self._is_converted():
            # The classic group had this generation. The other records of this batch come from its member with the new protocol.
            group.generation_us, group.converted_epoch = self._record.at_us, epoch
        else:
            self._tell_generation(epoch, "Stable" if group.group_type == SHARE else "Reconciling", reason)
        group.known_by = known_by

    def _take_names(self, topics: Iterable[Json]) -> None:
        self._group.names |= {topic["topic_id"]: topic["topic_name"] for topic in topics}

    def _take_regex(self, regex: str, value: Json | None) -> None:
        group = self._group
        known = group.regexes.pop(regex, None)
        if value is None:
            return
        group.regexes[regex] = value["topics"]
        if sorted(known or ()) != sorted(value["topics"]):
            group.why.append(f"the regular expression {regex} matches {', '.join(value['topics']) or 'no topic'}")

    # ------------------------------------------------------------------------------------------------------------- members

    def _note_came(self, member_id: str, member: Json) -> None:
        """Note a new member, or a static one with a new id, whose former id was removed just before."""
        group, instance_id = self._group, member["instance_id"]
        if self._is_converted():
            return
        formers = [each for each in group.changes if instance_id is not None and each["group_instance_id"] == instance_id]
        if not formers or formers[-1]["change"] not in _GONE:
            group.changes.append(self._change(member_id, member, "joined").columns)
            group.why.append(f"{_named(member_id, member)} joined")
            return
        former = formers[-1]
        group.changes.remove(former)
        group.why = [each for each in group.why if each != former["why"]]
        group.why.append(f"static member {instance_id} is back as {member_id}, before {former['member_id']}")
        self._rows.append(self._change(member_id, member, "bounced_static", generation=group.epoch))

    def _note_gone(self, member_id: str, member: Json, standing: Json) -> None:
        """Note a member that is gone, with evidence that it left or expired. Its commits are compared later."""
        at_us, said = self._record.at_us, {}
        change = "gone"
        away_us, asked_us = standing.get("away_us"), standing.get("asked_us")
        if away_us is not None:
            change = "expired"
            said["for_expired"] = f"it left for now (epoch -2) {_millis(at_us - away_us)} before, and did not come back"
        elif asked_us is not None and at_us - asked_us >= member["rebalance_timeout_ms"] * 1000 >= 0:
            timeout = _millis(member["rebalance_timeout_ms"] * 1000)
            asked = f"it was asked to give partitions up {_millis(at_us - asked_us)} before"
            said["for_expired"] = f"{asked}, and its rebalance timeout is {timeout}"
        elif member["instance_id"] is not None:
            said["for_expired"] = "it is a static member, and had not left temporarily"
        why = f"{_named(member_id, member)} is gone" + "".join(f": {reason}" for reason in said.values())
        self._group.why.append(why)
        row = self._change(member_id, member, change, **said).columns
        held = self._by_topic(standing.get("held", ()))
        evidence = {"assignment": held, "_since": standing.get("heard_us"), "session_timeout": _session_timeout(member)}
        self._group.changes.append(row | evidence | {"why": why})

    def _tell_converted(self) -> None:
        """End the group. If its members go with it, it became a classic group, and the members of that are not gone."""
        for change in self._group.changes:
            if change["change"] in _GONE and change["at"] == self._record.at_us:
                self._rows.append(Row("member_changes", change | {"change": CONVERTED, "generation": self._group.epoch}))

    def _tell_changes(self, epoch: int) -> None:
        """Emit the pending changes: the epoch that was raised for them is known now."""
        for change in self._group.changes:
            columns = {name: value for name, value in change.items() if name != "why"}
            self._rows.append(Row("member_changes", columns | {"generation": epoch}))
        self._group.changes = []

    def _change(self, member_id: str, member: Json, change: str, **said: Any) -> Row:
        told = {"member_id": member_id, "group_instance_id": member["instance_id"], "client_id": member["client_id"]}
        told |= {"client_host": member["client_host"], "change": change, **said, **self._record.coordinates()}
        return self._row("member_changes", **told)

    # ---------------------------------------------------------------------------------------------------------- partitions

    def _own(self, place: str, member_id: str, epoch: int) -> None:
        """Give a member a partition that it did not have before."""
        member = self._group.members.get(member_id, {})
        owner = {"member_id": member_id, "known_by": member.get("instance_id") or member_id}
        owner |= {"client_id": member.get("client_id"), "asked_us": None, "kept_ms": None}
        former = self._group.owners.get(place)
        self._group.owners[place] = owner
        has_moved = former is None or former["known_by"] != owner["known_by"]
        was_there = self._group.converted_us == self._record.at_us and self._group.converted_epoch == epoch
        if has_moved and not was_there:
            self._tell_move(place, epoch, former, owner)

    def _release(self, member_id: str, held: set[str]) -> None:
        """Reduce a member's partitions to ``held``."""
        before = self._group.held.pop(member_id, set())
        if held:
            self._group.held[member_id] = held
        for place in before - held:
            owner = self._group.owners.get(place)
            if owner is not None and owner["member_id"] == member_id and owner["asked_us"] is not None:
                owner["kept_ms"] = (self._record.at_us - owner["asked_us"]) // 1000

    def _tell_move(self, place: str, epoch: int, former: Json | None, owner: Json | None) -> None:
        former, owner = former or {}, owner or {}
        [topic] = self._by_topic([place])
        self._rows.append(
            self._row(
                "partition_moves",
                generation=epoch,
                topic=topic["topic"],
                partition=topic["partitions"][0],
                from_member=former.get("member_id"),
                to_member=owner.get("member_id"),
                from_client_id=former.get("client_id"),
                to_client_id=owner.get("client_id"),
                rebalance_kind="cooperative",
                kept_ms=former.get("kept_ms"),
                **self._record.coordinates(),
            )
        )

    # --------------------------------------------------------------------------------------------------------- generations

    def _tell_empty(self, epoch: int) -> None:
        """Emit a generation without members: the group is empty, and its partitions have no owner."""
        group = self._group
        for place, owner in sorted(group.owners.items()):
            self._tell_move(place, epoch, owner | {"kept_ms": None}, None)
        group.owners = {}
        self._tell_generation(epoch, "Empty", "empty")
        group.known_by = []

    def _tell_generation(self, epoch: int, state: str, reason: str) -> None:
        group, at_us = self._group, self._record.at_us
        assignment = [
            {"member_id": member_id, **each}
            for member_id in sorted(group.members)
            for each in self._by_topic(group.targets.get(member_id, ()))
        ]
        hidden = len(group.why) - _NAMED
        why = [*group.why[:_NAMED], f"and {hidden} more"] if hidden > 0 else group.why
        told = self._row(
            "group_generations",
            generation=epoch,
            group_type=group.group_type,
            protocol_type=self._protocol_type(),
            protocol=self._assignor(),
            members=sorted(group.members),
            member_count=len(group.members),
            assignment=assignment,
            state=state,
            since_last_ms=None if group.generation_us is None else (at_us - group.generation_us) // 1000,
            sync_ms=None if group.raised_us is None or not group.members else (at_us - group.raised_us) // 1000,
            reason=reason,
            why="; ".join(why) or None,
            at=at_us,
            partition=self._record.partition,
            offset=self._record.offset,
        )
        self._rows.append(told)
        group.generation_us, group.why = at_us, []

    def _is_converted(self) -> bool:
        """Return whether this record converts a classic group to this one, up to its target assignment."""
        return self._group.converted_us == self._record.at_us and self._group.converted_epoch is None

    def _state(self) -> str:
        """Return the state as in ConsumerGroupDescribe, or in ShareGroupDescribe."""
        group = self._group
        if not group.members:
            return "Empty"
        if group.group_type == SHARE:
            return "Stable"
        if (group.epoch or 0) > group.assignment_epoch:
            return "Assigning"
        is_there = {"epoch": group.assignment_epoch, "state": _STABLE}
        standings = [group.standing.get(member_id, {}) for member_id in group.members]
        return "Stable" if all(is_there.items() <= each.items() for each in standings) else "Reconciling"

    def _protocol_type(self) -> str:
        return self._group.group_type.lower()

    def _assignor(self) -> str | None:
        """Return the assignor with the most votes; None for a tie or no votes: the broker's default is not in the log."""
        wanted = Counter(member["server_assignor"] for member in self._group.members.values() if member["server_assignor"])
        [first, second] = [*wanted.most_common(2), (None, 0), (None, 0)][:2]
        return first[0] if first[1] > second[1] else None

    def _subscribed(self, member: Json) -> set[str]:
        return {*member["subscribed_topic_names"], *self._group.regexes.get(member["subscribed_topic_regex"] or "", ())}

    # -------------------------------------------------------------------------------------------------------------- helpers

    def _by_topic(self, places: Iterable[str]) -> list[Json]:
        """Return ``topic`` and ``partitions``, sorted."""
        found: dict[str, list[int]] = {}
        for place in places:
            topic_id, _, partition = place.rpartition(":")
            name = self._names.get(topic_id) or self._group.names.get(topic_id) or topic_of_id(topic_id)
            found.setdefault(name, []).append(int(partition))
        return [{"topic": topic, "partitions": sorted(found[topic])} for topic in sorted(found)]

    def _row(self, table: str, **columns: Any) -> Row:
        return Row(table, {"group": self._name, **columns})


def _places(topics: Iterable[Json]) -> set[str]:
    return {f"{topic['topic_id']}:{partition}" for topic in topics for partition in topic["partitions"]}


def _known_by(member_id: str, member: Json) -> str:
    return str(member["instance_id"] or member_id)


def _named(member_id: str, member: Json) -> str:
    return f"{member['client_id']} ({member['instance_id'] or member_id})"


def _subscription(member: Json) -> str:
    regex = member["subscribed_topic_regex"]
    return ", ".join([*sorted(member["subscribed_topic_names"]), *([regex] if regex else [])]) or "nothing"


def _session_timeout(member: Json) -> int | None:
    """Return the session timeout. The log has it only for members with the classic protocol."""
    classic = member.get("classic_member_metadata")
    return None if classic is None else int(classic["session_timeout_ms"])


def _millis(micros: int) -> str:
    return f"{micros // 1000} ms"
