"""The records of one partition's groups, in order, and whether each record may follow the ones before.

    generations only rise, from 2^31 - 1 on to 1, until a tombstone ends the group
    a generation has one leader, one protocol and one assignment, however often it is written

A static member counts as the same one under each of its member ids.
"""

from collections.abc import Iterable

from odradek.coordinator.runtime.record import decode_group_record
from odradek.protocol.coordinator_records import GroupMetadataKey, GroupMetadataValue
from tests.campaigns.simulation.violation import Violation

MAX_GENERATION = 2**31 - 1
_GROUP_KEY = b"\0\2"
STATIC_PREFIX = "static"


def place_of(member_id: str) -> str:
    """The identity behind a member id: a static member's instance id, a dynamic member's own id."""
    return member_id.rpartition("-")[0] if member_id.startswith(STATIC_PREFIX) else member_id


class Written:
    """One generation of a group as first written, at ``offset``."""

    __slots__ = ("assignments", "leader", "offset", "protocol")

    def __init__(self, offset: int, value: GroupMetadataValue) -> None:
        self.offset = offset
        self.protocol = value.protocol
        self.leader = None if value.leader is None else place_of(value.leader)
        self.assignments = {place_of(member.member_id): member.assignment for member in value.members}


class GroupHistory:
    """``generations`` by group and number; those of a group that was deleted are forgotten."""

    def __init__(self) -> None:
        self.generations: dict[str, dict[int, Written]] = {}
        self._latest: dict[str, int] = {}

    def note(self, offset: int, key: bytes, value: bytes | None) -> None:
        """A record is appended. Raises Violation."""
        if key[:2] != _GROUP_KEY:
            return
        record = decode_group_record(key, value)
        if record is None or not isinstance(record.key, GroupMetadataKey):
            raise Violation("what is written can be read", f"not a group's key: {key!r}")
        group_id = record.key.group
        if record.value is None:
            self.generations.pop(group_id, None)
            self._latest.pop(group_id, None)
        elif isinstance(record.value, GroupMetadataValue):
            self._note_generation(offset, group_id, record.value)

    def end_batch(self) -> None:
        """Nothing: what is checked is checked record by record."""

    def without(self, end_offset: int, records: Iterable[tuple[int, bytes, bytes | None]]) -> "GroupHistory":
        """The history of these records alone."""
        history = GroupHistory()
        for record in records:
            history.note(*record)
        return history

    def _note_generation(self, offset: int, group_id: str, value: GroupMetadataValue) -> None:
        generations = self.generations.setdefault(group_id, {})
        latest = self._latest.get(group_id)
        number = value.generation
        if latest is not None and number != latest and not follows(latest, number):
            raise Violation("generations only grow", f"{group_id}: {number} is written after {latest}")
        written = Written(offset, value)
        if number == latest:
            known = generations[number]
            for field in ("leader", "protocol", "assignments"):
                if getattr(known, field) != getattr(written, field):
                    change = f"{field} {getattr(known, field)!r}, then {getattr(written, field)!r}"
                    raise Violation("one assignment a generation", f"{group_id}, generation {number} is written with {change}")
            return
        generations[number] = written
        self._latest[group_id] = number


def follows(earlier: int, later: int) -> bool:
    """Whether a group may go from the one generation to the other. A history has few generations in between."""
    return later > earlier or (later < 1_000_000 and earlier > MAX_GENERATION - 1_000_000)
