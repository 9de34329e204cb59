"""What clients have sent and been told: what the cluster must have in the end.

values        each is sent once, to one partition, by one producer or in one transaction
acknowledged  with acks=all: the place of each value that the cluster has said is safe
transactions  what became of each, as far as its producer was told
committed     the offsets of groups: what was acknowledged last, and what was asked for since
identities    the producer ids and epochs that were given out
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tests.campaigns.simulation.violation import Violation

Place = tuple[str, int]

ONCE = "producer ids and epochs are given once"
COMMITTED = "an acknowledged commit is found wherever the coordinator is"
MEMBER = "a member goes on whoever coordinates its group"
WATERMARK = "a high watermark that a client saw does not go back"


@dataclass(slots=True)
class Transaction:
    """``fate`` is what its producer knows: "open", "committed", "aborted" or "unknown". ``offset`` is committed within it."""

    name: str
    number: int
    values: dict[Place, list[bytes]] = field(default_factory=dict)
    fate: str = "open"
    offset: int | None = None


@dataclass(slots=True)
class GroupOffsets:
    """Of one partition of one group, with one committer: ``acknowledged`` is the last, ``asked`` all that was asked for."""

    acknowledged: int = -1
    asked: list[int] = field(default_factory=list)


class Ledger:
    """Of one world."""

    def __init__(self) -> None:
        self.sent: dict[tuple[str, Place], list[bytes]] = defaultdict(list)
        self.acknowledged: dict[Place, dict[int, bytes]] = defaultdict(dict)
        self.careless: set[bytes] = set()
        self.transactions: list[Transaction] = []
        self.offsets: dict[tuple[str, int], GroupOffsets] = defaultdict(GroupOffsets)
        self.watermarks: dict[Place, int] = defaultdict(int)
        self._identities: dict[tuple[int, int], str] = {}
        self._ids: dict[int, str] = {}

    def acknowledge(self, place: Place, base_offset: int, values: list[bytes]) -> None:
        """The cluster says that these are safe."""
        if base_offset >= 0:
            self.acknowledged[place].update(enumerate(values, base_offset))

    def given(self, producer_id: int, epoch: int, owner: str) -> None:
        """A producer was told its id and epoch; ``owner`` is its transactional id, or its own name. Raises Violation."""
        other = self._ids.setdefault(producer_id, owner)
        if other != owner:
            raise Violation(ONCE, f"producer id {producer_id} has {other} and {owner}")
        if (producer_id, epoch) in self._identities:
            raise Violation(ONCE, f"producer id {producer_id}, epoch {epoch}: {owner} has it twice")
        self._identities[producer_id, epoch] = owner

    def check_offset(self, group: str, index: int, found: int, least: int) -> None:
        """A group's offset is ``found``; ``least`` was acknowledged before it was asked for. Raises Violation."""
        known = self.offsets[group, index]
        if found < least or (found >= 0 and found not in known.asked):
            raise Violation(COMMITTED, f"{group} {index}: {found} is found, {least} was acknowledged, {known.asked} asked for")
