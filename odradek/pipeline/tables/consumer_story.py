"""What the records of one consumer group (KIP-848) tell, read in the order of the log: generations, members' changes, moves.

The coordinator writes no record with the whole of such a group, but one for each thing that changes:

    metadata             the group's epoch, which rises with whatever needs a new assignment
    member_metadata      a member: its client, its subscription; a tombstone when it is gone
    target_assignment    what each member is to have, and the epoch of that assignment
    current_assignment   what each member has, and what it was asked to give up
    regular_expression   the topics that match an expression

A ``GroupStory`` keeps what they add up to. It makes rows (``take``): a generation where an assignment is complete, or nobody is
left; a change where a member comes or goes; a move where a partition is taken by another member than the last one that had it,
with the time for which that one kept it after it was to give it up.

Records say that a member is gone, and mostly not why. Only these facts are told: a static member that leaves for now writes
epoch -2, and a member that is gone although it did not is one that came to its session's end, or was removed.

A place is ``TOPIC_ID:PARTITION``. Records name topics by id; ``names`` has those known.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self

from odradek.pipeline.schema import CONSUMER, CONSUMER_GROUP_PREFIX, GROUP_METADATA, topic_of_id

_AWAY_EPOCH = -2
_STABLE = 0
_GONE = ("gone", "expired")
# In place of a change, of a member whose group becomes a classic one: if it is in that, it is not gone.
CONVERTED = "converted"
# The changes that a generation is told to have come of: the first ones, and how many more.
_NAMED = 20

Json = dict[str, Any]


class Record(NamedTuple):
    """A record of a group: ``fields`` are key and value, as ingest decodes them; ``at_us`` is since the epoch."""

    kind: str
    is_tombstone: bool
    fields: Json
    at_us: int
    partition: int
    offset: int


class Row(NamedTuple):
    """A row of a table: of ``group_generations``, ``member_changes``, ``partition_moves`` or ``groups_now``."""

    table: str
    columns: Json


@dataclass(slots=True)
class _Group:
    """Everything that a later record may need; JSON between two passes."""

    epoch: int | None = None
    raised_us: int | None = None
    metadata_hash: int | None = None
    assignment_epoch: int = 0
    # Of the last generation: when it began, and the names of its members. None: no generation is known.
    generation_us: int | None = None
    known_by: list[str] | None = None
    members: dict[str, Json] = field(default_factory=dict)
    # By member: epoch, state, since when it is asked to give something up, since when it is away.
    standing: dict[str, Json] = field(default_factory=dict)
    held: dict[str, set[str]] = field(default_factory=dict)
    targets: dict[str, set[str]] = field(default_factory=dict)
    # By place, its last owner: member_id, known_by, client_id, asked_us, kept_ms.
    owners: dict[str, Json] = field(default_factory=dict)
    regexes: dict[str, list[str]] = field(default_factory=dict)
    # Names of topics, from the records of Kafka before 4.1.
    names: dict[str, str] = field(default_factory=dict)
    # Members whose records are being removed: standing, and what they held.
    leaving: dict[str, Json] = field(default_factory=dict)
    # When it was a classic group last, if it became this one, and with which generation.
    converted_us: int | None = None
    converted_epoch: int | None = None
    # Changes of members that no epoch has followed yet, and what else the next generation comes of.
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
        """The story as it was when it gave this ``state``."""
        story = cls(name, names)
        group = story._group
        for key, value in json.loads(state).items():
            setattr(group, key, value)
        for places in (group.held, group.targets):
            places.update({member_id: set(each) for member_id, each in places.items()})
        return story

    def state(self) -> str | None:
        """All that a later pass needs; None if there is no such group."""
        group = self._group
        if group.epoch is None and not (group.members or group.standing or group.targets or group.regexes):
            return None
        return json.dumps({each.name: getattr(group, each.name) for each in fields(_Group)}, default=sorted, sort_keys=True)

    def take(self, record: Record) -> list[Row]:
        """The rows that the next record makes."""
        self._rows, self._record = [], record
        value = None if record.is_tombstone else record.fields
        member_id = record.fields.get("member_id", "")
        match record.kind.removeprefix(CONSUMER_GROUP_PREFIX):
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
                self._group.names |= {topic["topic_id"]: topic["topic_name"] for topic in value["topics"]}
        self._group.newest = self._coordinates()
        return self._rows

    def now(self) -> Row:
        """The row of ``groups_now``: each member with the partitions that it has."""
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
        return self._row("groups_now", protocol_type="consumer", group_type=CONSUMER, **told, **group.newest)

    # ------------------------------------------------------------------------------------------------------------- records

    def _take_epoch(self, value: Json | None) -> None:
        group = self._group
        if value is None:
            self._tell_converted()
            self._group = _Group()
            return
        if not group.changes and not group.why and group.metadata_hash not in {None, value.get("metadata_hash", 0)}:
            group.why.append("its topics have changed: which there are, or their partitions")
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
        group.members[member_id] = value
        named = _named(member_id, value)
        if old is None:
            self._note_came(member_id, value)
        elif _subscription(old) != _subscription(value):
            group.why.append(f"{named} subscribes to {_subscription(value)}, before to {_subscription(old)}")
        elif old["server_assignor"] != value["server_assignor"]:
            group.why.append(f"{named} prefers the assignor {value['server_assignor']}")

    def _take_current(self, member_id: str, value: Json | None) -> None:
        group, at_us = self._group, self._record.at_us
        before = group.standing.pop(member_id, {})
        if value is None:
            group.leaving[member_id] = before | {"held": sorted(group.held.get(member_id, ()))}
            self._release(member_id, set())
            return
        pending = _places(value["partitions_pending_revocation"])
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
            told = "a static member left for now, with epoch -2, and keeps what it has"
            self._rows.append(self._change(member_id, member, "away_static", for_left=told, generation=group.epoch))
            group.why.append(f"static member {_named(member_id, member)} is away, and keeps what it has")
        elif before.get("away_us") is not None and member is not None:
            self._rows.append(self._change(member_id, member, "bounced_static", generation=group.epoch))
            group.why.append(f"static member {_named(member_id, member)} is back")
        held = group.held.get(member_id, set())
        self._release(member_id, assigned | pending)
        for place in sorted((assigned | pending) - held):
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
        """The records of a target assignment are complete: a generation. Epoch 0 is that of a group without any."""
        group = self._group
        group.assignment_epoch = epoch
        if epoch == 0 or not group.members:
            return
        known_by = sorted(_known_by(member_id, member) for member_id, member in group.members.items())
        reason = "first" if group.known_by is None else "assignment" if known_by == group.known_by else "members"
        if self._is_converted():
            # The classic group had this generation. What else is in this batch came of its member that speaks the new protocol.
            group.generation_us, group.converted_epoch = self._record.at_us, epoch
        else:
            self._tell_generation(epoch, "Reconciling", reason)
        group.known_by = known_by

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
        """A new member; or a static one under another id, whose former self was removed just before to make way."""
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
        """What speaks for its having left, or for its having expired; its commits are looked at when all are known."""
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
            said["for_expired"] = "it is a static member, and had not said that it leaves for now"
        why = f"{_named(member_id, member)} is gone" + "".join(f": {reason}" for reason in said.values())
        self._group.why.append(why)
        row = self._change(member_id, member, change, **said).columns
        held = self._by_topic(standing.get("held", ()))
        evidence = {"assignment": held, "_since": standing.get("heard_us"), "session_timeout": _session_timeout(member)}
        self._group.changes.append(row | evidence | {"why": why})

    def _tell_converted(self) -> None:
        """The group ends. If its members are removed with it, it has become a classic one, and who is in that is not gone."""
        for change in self._group.changes:
            if change["change"] in _GONE and change["at"] == self._record.at_us:
                self._rows.append(Row("member_changes", change | {"change": CONVERTED, "generation": self._group.epoch}))

    def _tell_changes(self, epoch: int) -> None:
        """The epoch that was raised for them is known."""
        for change in self._group.changes:
            columns = {name: value for name, value in change.items() if name != "why"}
            self._rows.append(Row("member_changes", columns | {"generation": epoch}))
        self._group.changes = []

    def _change(self, member_id: str, member: Json, change: str, **said: Any) -> Row:
        told = {"member_id": member_id, "group_instance_id": member["instance_id"], "client_id": member["client_id"]}
        told |= {"client_host": member["client_host"], "change": change, **said, **self._coordinates()}
        return self._row("member_changes", **told)

    # ---------------------------------------------------------------------------------------------------------- partitions

    def _own(self, place: str, member_id: str, epoch: int) -> None:
        """A member has a partition that it did not have before."""
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
        """A member has no more than ``held`` of what it had."""
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
                **self._coordinates(),
            )
        )

    # --------------------------------------------------------------------------------------------------------- generations

    def _tell_empty(self, epoch: int) -> None:
        """Nobody is left: a generation without members, and each partition is nobody's."""
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
            group_type=CONSUMER,
            protocol_type="consumer",
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
        """Return whether this record is one of those that made a classic group this one, up to its target assignment."""
        return self._group.converted_us == self._record.at_us and self._group.converted_epoch is None

    def _state(self) -> str:
        """As ConsumerGroupDescribe says it."""
        group = self._group
        if not group.members:
            return "Empty"
        if (group.epoch or 0) > group.assignment_epoch:
            return "Assigning"
        is_there = {"epoch": group.assignment_epoch, "state": _STABLE}
        standings = [group.standing.get(member_id, {}) for member_id in group.members]
        return "Stable" if all(is_there.items() <= each.items() for each in standings) else "Reconciling"

    def _assignor(self) -> str | None:
        """The one that most members want. Where none wants one, the broker has its own default, which is not in the log."""
        wanted = Counter(member["server_assignor"] for member in self._group.members.values() if member["server_assignor"])
        [first, second] = [*wanted.most_common(2), (None, 0), (None, 0)][:2]
        return first[0] if first[1] > second[1] else None

    def _subscribed(self, member: Json) -> set[str]:
        return {*member["subscribed_topic_names"], *self._group.regexes.get(member["subscribed_topic_regex"] or "", ())}

    # -------------------------------------------------------------------------------------------------------------- helpers

    def _by_topic(self, places: Iterable[str]) -> list[Json]:
        """``topic`` and ``partitions``, sorted."""
        found: dict[str, list[int]] = {}
        for place in places:
            topic_id, _, partition = place.rpartition(":")
            name = self._names.get(topic_id) or self._group.names.get(topic_id) or topic_of_id(topic_id)
            found.setdefault(name, []).append(int(partition))
        return [{"topic": topic, "partitions": sorted(found[topic])} for topic in sorted(found)]

    def _coordinates(self) -> Json:
        record = self._record
        return {"at": record.at_us, "record_partition": record.partition, "record_offset": record.offset}

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
    """In the log only of members that speak the classic protocol."""
    classic = member.get("classic_member_metadata")
    return None if classic is None else int(classic["session_timeout_ms"])


def _millis(micros: int) -> str:
    return f"{micros // 1000} ms"
