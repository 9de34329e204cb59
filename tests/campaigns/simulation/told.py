"""What members were told, and whether it fits together.

    one generation has one leader and one protocol, whoever is told of it, and its leader alone is given the members
    who is told of a generation is among the members that its leader was given, and who is in it, its leader first, has joined it
    an assignment that a member is given is what the log has for it, committed

A static member counts as the same one under each of its member ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.classic.states import GroupState
from tests.campaigns.simulation.history import place_of
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from odradek.coordinator.group.classic.group import ClassicGroup
    from tests.campaigns.simulation.logs import SimulatedLog

_ONE_LEADER = "one leader a generation"
_ONE_ASSIGNMENT = "members of a generation hold parts of one assignment"


class _Generation:
    """What was told of one generation."""

    __slots__ = ("has_begun", "leader", "members", "protocol", "told")

    def __init__(self, leader: str, protocol: str) -> None:
        self.leader = leader
        self.protocol = protocol
        self.members: frozenset[str] | None = None
        self.told: set[str] = set()
        # Whether it is told as it begins: the leader is to assign.
        self.has_begun = False


class Told:
    """By one shard from a load to the next unload: what is not written may be told otherwise after that."""

    def __init__(self) -> None:
        self._generations: dict[tuple[ClassicGroup, int], _Generation] = {}

    def note_join(self, group: ClassicGroup, response: Any) -> None:
        """A JoinGroup is granted. Raises Violation."""
        number = response.generation_id
        where = f"{group.group_id}, generation {number}"
        leader = place_of(response.leader)
        known = self._generations.setdefault((group, number), _Generation(leader, response.protocol_name))
        if known.leader != leader:
            raise Violation(_ONE_LEADER, f"{where} is led by {known.leader}, and {response.member_id} was told by {leader}")
        if known.protocol != response.protocol_name:
            raise Violation(_ONE_LEADER, f"{where} has the protocol {known.protocol}, and then {response.protocol_name}")
        if bool(response.members) != (response.leader == response.member_id):
            raise Violation(_ONE_LEADER, f"{where}: {response.member_id} is given the members, and {response.leader} leads")
        if response.members:
            members = frozenset(place_of(member.member_id) for member in response.members)
            if known.members not in (None, members):
                raise Violation(_ONE_LEADER, f"{where} has the members {sorted(known.members or ())}, then {sorted(members)}")
            known.members = members
            known.has_begun = known.has_begun or not response.skip_assignment
        known.told.add(place_of(response.member_id))
        if known.members is not None and not known.told <= known.members:
            strangers = sorted(known.told - known.members)
            raise Violation(_ONE_LEADER, f"{where}: {strangers} are told of it, and its members are {sorted(known.members)}")

    def check_group(self, group: ClassicGroup) -> None:
        """Who is in a generation has joined it; a static member may be late. Raises Violation."""
        known = self._generations.get((group, group.generation))
        if known is None:
            return
        where = f"{group.group_id}, generation {group.generation}"
        if group.state is GroupState.COMPLETING_REBALANCE and known.leader not in known.told:
            raise Violation(_ONE_LEADER, f"{where} is led by {known.leader}, who has not joined it")
        if group.state is GroupState.STABLE and known.has_begun:
            strangers = [each for each, member in group.members.items() if not member.is_static and each not in known.told]
            if strangers:
                raise Violation("who is in a generation has joined it", f"{where} has members {strangers}")


def check_sync(log: SimulatedLog, group_id: str, generation: int, member_id: str, assignment: bytes) -> None:
    """A SyncGroup is granted. Raises Violation."""
    where = f"{group_id}, generation {generation}: {member_id} is given {assignment!r}"
    written = log.history.generations.get(group_id, {}).get(generation)
    if written is None or written.offset >= log.high_watermark:
        raise Violation(_ONE_ASSIGNMENT, f"{where}, of which nothing is committed")
    expected = written.assignments.get(place_of(member_id))
    if expected != assignment:
        raise Violation(_ONE_ASSIGNMENT, f"{where}, and the log has {expected!r}")
