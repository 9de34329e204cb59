"""Members of a consumer group that commit what they have read with their transactions (KIP-447), and what must hold of it.

They read the topic ``in``, to which nothing is written: to have read is to claim the offsets from the committed one to another
that was never committed before.

each input is consumed once      a commit goes on from the offset that was committed before it
a fenced member commits nothing  offsets are appended for members of the last generation that was written, and for no others
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.simulation.transactions.plan import Plan

GROUP_ID = "members"
TOPIC = "in"
NO_OFFSET = -1
_SHARE = 0.35
# A generation's record is one batch, which has to fit into a segment.
_LEAST_SEGMENT_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class MembershipPlan:
    """How the group of a history lives.

    ``further_producers`` are there for the group alone. ``hasty_share``: of the members that join again before their
    transaction has ended; ``pause_share``: of the commits before which a process pauses until the group has gone on without it.
    """

    further_producers: int
    partition_count: int
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_ms: int
    static_share: float
    hasty_share: float
    pause_share: float


def draw_membership(seed: int) -> MembershipPlan | None:
    """The plan of some histories. Drawn apart, so that those of other seeds stay what they are."""
    rng = Random(f"members {seed}")
    if rng.random() >= _SHARE:
        return None
    return MembershipPlan(
        further_producers=rng.choice((0, 1, 2)),
        partition_count=rng.choice((1, 2, 3)),
        session_timeout_ms=rng.choice((250, 600)),
        rebalance_timeout_ms=rng.choice((150, 400)),
        heartbeat_ms=rng.choice((30, 80)),
        static_share=rng.choice((0.0, 0.0, 0.5, 1.0)),
        hasty_share=rng.choice((0.0, 0.3, 1.0)),
        pause_share=rng.choice((0.0, 0.1, 0.3)),
    )


def with_further_producers(plan: Plan, membership: MembershipPlan | None) -> Plan:
    """``plan``, and the producers that are there for the group."""
    if membership is None:
        return plan
    first = plan.producers[0]
    further = [
        replace(first, transactional_id=f"member{number}", first_epoch=None, is_two_phase=False)
        for number in range(membership.further_producers)
    ]
    return replace(plan, producers=(*plan.producers, *further), segment_bytes=max(plan.segment_bytes, _LEAST_SEGMENT_BYTES))


class Held(NamedTuple):
    """What a member has when its transaction begins: its place in the group, and the offset of each of its partitions."""

    member_id: str
    generation: int
    instance_id: str | None
    positions: dict[int, int]


class Claim(NamedTuple):
    """What a member says with an offset: where it went on from, and who it is."""

    after: int
    member_id: str
    generation: int


class Memberships:
    """The claims by their offsets, and the last generation written of each group: (generation, member ids)."""

    def __init__(self) -> None:
        self._claims: dict[int, Claim] = {}
        self._generations: dict[str, tuple[int, set[str]]] = {}

    def claim(self, offset: int, after: int, held: Held) -> None:
        """A member is about to commit ``offset``."""
        self._claims[offset] = Claim(after, held.member_id, held.generation)

    def note(self, key_bytes: bytes, value_bytes: bytes | None) -> None:
        """A record outside of transactions."""
        key = decode_key(key_bytes)
        if not isinstance(key, GroupMetadataKey):
            return
        value = decode_value(key, value_bytes)
        if isinstance(value, GroupMetadataValue):
            self._generations[key.group] = value.generation, {member.member_id for member in value.members}
        else:
            self._generations.pop(key.group, None)

    def check_write(self, key_bytes: bytes, value_bytes: bytes | None) -> None:
        """A record in a transaction. Raises Violation."""
        key = decode_key(key_bytes)
        value = decode_value(key, value_bytes) if isinstance(key, OffsetCommitKey) else None
        claim = self._claims.get(value.offset) if isinstance(value, OffsetCommitValue) else None
        if claim is None or not isinstance(key, OffsetCommitKey):
            return
        generation, member_ids = self._generations.get(key.group, (NO_OFFSET, set()))
        if claim.generation != generation or claim.member_id not in member_ids:
            what = f"{key} is committed by {claim}, and generation {generation} has {sorted(member_ids)}"
            raise Violation("a fenced member commits nothing", what)

    def check_commit(self, key: OffsetCommitKey, offset: int, before: int) -> None:
        """The transaction with ``offset`` is committed; ``before`` was committed until now. Raises Violation."""
        claim = self._claims.get(offset)
        if claim is not None and claim.after != before:
            raise Violation("each input is consumed once", f"{key}: {claim} commits {offset}, where {before} was committed")
