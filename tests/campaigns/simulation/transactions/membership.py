"""Members of a consumer group that commit what they have read with their transactions (KIP-447), and what must hold of it.

They read the topic ``in``, to which nothing is written: to have read is to claim the offsets from the committed one to another
that was never committed before.

each input is consumed once      a commit goes on from the offset that was committed before it
a fenced member commits nothing  offsets are appended for members of the last generation that was written, and for no others

A process's membership in the group: it joins, sends heartbeats, and fetches the offsets of its partitions, stable ones only.

Its transactions go on from these offsets, with the generation of their beginning. After an abort, and in each generation, the
offsets are fetched anew. Most members join again when their transaction is over, hasty ones before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.campaigns.simulation.transactions import requests
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.campaigns.simulation.transactions.plan import Plan
    from tests.campaigns.simulation.transactions.producer import Process
    from tests.campaigns.simulation.transactions.world import World


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


_JOIN = messages(ApiKey.JOIN_GROUP)
_SYNC = messages(ApiKey.SYNC_GROUP)
_HEARTBEAT = messages(ApiKey.HEARTBEAT)

# Of a commit: the member is not what it takes itself for.
FENCED = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
_BACKOFF_MS = 20


class Phase(Enum):
    """The states of a member."""

    JOINING = auto()
    FETCHING = auto()
    READY = auto()
    GONE = auto()


class Member:
    """``later`` is the process's, which may be stalled. Answers to an earlier ``_turn`` are ignored."""

    def __init__(
        self, world: World, process: Process, plan: MembershipPlan, later: Callable[[float, Callable[[], None]], None]
    ) -> None:
        self._world = world
        self._process = process
        self._plan = plan
        self._later = later
        self._phase = Phase.JOINING
        self._turn = 0
        self._member_id = ""
        self._generation = -1
        # A new process takes the place of the one before.
        is_static = world.rng.random() < plan.static_share
        self._instance_id = process.plan.transactional_id if is_static else None
        self._is_hasty = world.rng.random() < plan.hasty_share
        self._partitions: list[int] = []
        self._positions: dict[int, int] = {}
        self._has_to_join = False

    @property
    def is_ready(self) -> bool:
        """True if a transaction may begin."""
        return self._phase is Phase.READY and not self._has_to_join

    def start(self) -> None:
        """Join, and send heartbeats from now on."""
        self._join()
        self._later(self._plan.heartbeat_ms, self._tick)

    def leave(self) -> None:
        """Be silent from now on."""
        self._phase = Phase.GONE
        self._turn += 1

    def hold(self) -> Held:
        """The position from which a transaction that begins now goes on."""
        return Held(self._member_id, self._generation, self._instance_id, dict(self._positions))

    def pause_ms(self) -> int:
        """The pause of the process before a commit."""
        rng = self._world.rng
        return self._plan.session_timeout_ms + rng.choice((50, 400)) if rng.random() < self._plan.pause_share else 0

    def transaction_ended(self, held: Held, offsets: Mapping[requests.Partition, int], *, is_commit: bool) -> None:
        """The transaction that began with ``held`` is over; ``offsets`` are those that it has."""
        is_same = self._phase is Phase.READY and (held.member_id, held.generation) == (self._member_id, self._generation)
        if self._has_to_join:
            self._join()
        elif is_same and is_commit:
            self._positions.update({index: offset for (_, index), offset in offsets.items()})
        elif is_same:
            self._fetch()

    def refused(self, code: int) -> None:
        """A commit was: the member joins when its transaction is over."""
        self._world.counts[f"members fenced by {ErrorCode(code).name}"] += 1
        self._has_to_join = True

    # ------------------------------------------------------------------------------------------------------ the group

    def _ask(self, api_key: ApiKey, version: int, request: Any, answered: Callable[[Any], None]) -> None:
        turn = self._turn

        def take(response: Any) -> None:
            if self._turn == turn:
                answered(response)

        self._world.network.ask(None, api_key, version, lambda: request, lambda response: self._later(0, lambda: take(response)))

    def _again(self, step: Callable[[], None]) -> None:
        turn = self._turn
        self._later(_BACKOFF_MS, lambda: step() if self._turn == turn else None)

    def _join(self) -> None:
        self._turn += 1
        self._phase = Phase.JOINING
        self._has_to_join = False
        request = _JOIN.JoinGroupRequest(
            group_id=GROUP_ID,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            session_timeout_ms=self._plan.session_timeout_ms,
            rebalance_timeout_ms=self._plan.rebalance_timeout_ms,
            protocol_type="consumer",
            protocols=[_JOIN.JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        self._ask(ApiKey.JOIN_GROUP, 6, request, self._joined)

    def _joined(self, response: Any) -> None:
        code = ErrorCode.NETWORK_EXCEPTION if response is None else response.error_code
        if code == ErrorCode.NONE:
            self._member_id = response.member_id
            self._generation = response.generation_id
            is_leader = response.leader == response.member_id
            self._sync(self._assigned([member.member_id for member in response.members]) if is_leader else {})
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
            self._join()
        else:
            self._lost(code)

    def _assigned(self, member_ids: Sequence[str]) -> dict[str, list[int]]:
        parts: dict[str, list[int]] = {member_id: [] for member_id in sorted(member_ids)}
        names = list(parts)
        first = self._world.rng.randrange(len(names))
        for index in range(self._plan.partition_count):
            parts[names[(first + index) % len(names)]].append(index)
        return parts

    def _sync(self, parts: Mapping[str, list[int]]) -> None:
        assignment = _SYNC.SyncGroupRequestAssignment
        request = _SYNC.SyncGroupRequest(
            group_id=GROUP_ID,
            member_id=self._member_id,
            generation_id=self._generation,
            group_instance_id=self._instance_id,
            assignments=[
                assignment(member_id=member_id, assignment=",".join(map(str, indexes)).encode())
                for member_id, indexes in parts.items()
            ],
        )
        self._ask(ApiKey.SYNC_GROUP, 3, request, self._synced)

    def _synced(self, response: Any) -> None:
        code = ErrorCode.NETWORK_EXCEPTION if response is None else response.error_code
        if code != ErrorCode.NONE:
            self._lost(code)
            return
        assigned = bytes(response.assignment)
        self._partitions = [int(index) for index in assigned.split(b",")] if assigned else []
        self._fetch()

    def _fetch(self) -> None:
        """The offsets of its partitions, once no transaction is about to change them."""
        self._phase = Phase.FETCHING
        self._positions = {}
        if not self._partitions:
            self._phase = Phase.READY
            return
        request = requests.fetch(GROUP_ID, [(TOPIC, index) for index in self._partitions], require_stable=True)
        self._ask(ApiKey.OFFSET_FETCH, 8, request, self._fetched)

    def _fetched(self, response: Any) -> None:
        found = []
        if response is not None and response.groups[0].error_code == ErrorCode.NONE:
            found = response.groups[0].topics[0].partitions
        if not found or any(each.error_code for each in found):
            self._world.counts["members wait for stable offsets"] += bool(found)
            self._again(self._fetch)
            return
        self._positions = {each.partition_index: each.committed_offset for each in found}
        self._phase = Phase.READY

    def _lost(self, code: int) -> None:
        """The place in the group."""
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self._process.die("another process has its place in the group")
            return
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        self._again(self._join)

    def _tick(self) -> None:
        if self._phase is Phase.GONE:
            return
        self._later(self._plan.heartbeat_ms, self._tick)
        if self._phase is Phase.JOINING:
            return
        request = _HEARTBEAT.HeartbeatRequest(
            group_id=GROUP_ID,
            member_id=self._member_id,
            generation_id=self._generation,
            group_instance_id=self._instance_id,
        )
        self._ask(ApiKey.HEARTBEAT, 4, request, self._beaten)

    def _beaten(self, response: Any) -> None:
        code = ErrorCode.NONE if response is None else response.error_code
        if self._phase is Phase.JOINING or code not in {*FENCED, ErrorCode.REBALANCE_IN_PROGRESS}:
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS and self._process.open is not None and not self._is_hasty:
            self._has_to_join = True
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._lost(code)
        else:
            self._member_id = "" if code == ErrorCode.UNKNOWN_MEMBER_ID else self._member_id
            self._join()
