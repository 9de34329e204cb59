"""A process with a transactional producer, as in real clients: it initialises, then runs one transaction after another.

client version 0    AddPartitionsToTxn and AddOffsetsToTxn come first; an epoch lasts until InitProducerId (EndTxn 0 to 4)
client version 2    Produce and TxnOffsetCommit add partitions implicitly; EndTxn brings the next epoch (KIP-890)

It commits only if all records were acknowledged. A non-retriable error ends the process, or aborts the transaction. If it is
unknown whether a batch was appended, an old client then takes a new epoch (KIP-360).

In some histories the processes are members of a group, and each transaction commits what its process has read (``member``).
In others they have several batches in flight to each partition (``pipelines``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.transactions import requests
from tests.campaigns.simulation.transactions.faults import check_refusal
from tests.campaigns.simulation.transactions.membership import FENCED, GROUP_ID, TOPIC, Member
from tests.campaigns.simulation.transactions.network import Batch, Connection, Pipelines

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.simulation.transactions.ledger import SentTransaction
    from tests.campaigns.simulation.transactions.membership import Held
    from tests.campaigns.simulation.transactions.network import FlightPlan
    from tests.campaigns.simulation.transactions.plan import ProducerPlan
    from tests.campaigns.simulation.transactions.requests import Identity, Partition
    from tests.campaigns.simulation.transactions.world import World

NOBODY = (-1, -1)
_BACKOFF_MS = 20
_FOR_EVER_MS = 10**9

_TRY_AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)
_UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED})
_ABORTABLE = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)


class Process:
    """One process. ``identity`` is its producer id and epoch, ``open`` its open transaction."""

    def __init__(self, world: World, plan: ProducerPlan, name: str, client_version: int) -> None:
        self.plan = plan
        self.name = name
        self.client_version = client_version
        self.identity: Identity = NOBODY
        self.is_alive = True
        self.is_idle = False
        self.stalled_until_ms = 0.0
        self.open: SentTransaction | None = None
        self.made = 0
        self._world = world
        self._bumps = client_version > 0
        self._sequences: dict[Partition, int] = {}
        self._added: set[Partition] = set()
        self._is_uncertain = False
        self._steps: list[Callable[[], None]] = []
        self.member = None if world.membership is None else Member(world, self, world.membership, self._later)
        self._held: Held | None = None
        # What the open transaction has consumed.
        self._consumed: dict[Partition, int] = {}

    def __str__(self) -> str:
        return f"{self.name} {self.identity}"

    def start(self) -> None:
        """Run."""
        self._init(NOBODY)
        if self.member is not None:
            self.member.start()

    def die(self, why: str) -> None:
        """End the process, in whatever state."""
        if self.is_alive:
            self._world.note("%s ends: %s", str(self), why)
            self.is_alive = False
            if self.member is not None:
                self.member.leave()
            self._world.process_ended(self)

    def _later(self, delay_ms: float, step: Callable[[], None]) -> None:
        def run() -> None:
            left_ms = self.stalled_until_ms - self._world.clock.monotonic_ms()
            if left_ms > 0:
                self._world.later(left_ms, run)
            elif self.is_alive:
                step()

        self._world.later(delay_ms, run)

    def _ask(
        self,
        api_key: ApiKey,
        version: int,
        build: Callable[[], Any],
        code_of: Callable[[Any], int],
        granted: Callable[[Any], None],
        *,
        patience_ms: int = _FOR_EVER_MS,
        failed: Callable[[int], None] | None = None,
    ) -> None:
        """Retry until the request is granted, fails with a non-retriable error, or times out."""
        give_up_ms = self._world.clock.monotonic_ms() + patience_ms

        def send() -> None:
            self._world.network.ask(self, api_key, version, build, answered)

        def answered(response: Any) -> None:
            code = ErrorCode.NETWORK_EXCEPTION if response is None else code_of(response)
            if code == ErrorCode.NONE:
                granted(response)
            elif code in _TRY_AGAIN and not self._is_hopeless(code, give_up_ms):
                self._later(_BACKOFF_MS, send)
            elif failed is not None:
                failed(code)
            else:
                self._refused(api_key, code)

        send()

    def _is_hopeless(self, code: int, give_up_ms: float) -> bool:
        """Whether the timeout has passed. After the faults end there is none, except for deleted topics."""
        is_over = self._world.clock.monotonic_ms() >= give_up_ms
        return is_over and (self._world.is_in_trouble or code in _UNKNOWN)

    def _refused(self, api_key: ApiKey, code: int) -> None:
        check_refusal(self._world, self, api_key, code)
        self.die(f"{api_key.name} is answered {ErrorCode(code).name}")

    # ------------------------------------------------------------------------------------------------ transactions

    def _init(self, known: Identity) -> None:
        plan = self.plan

        def granted(response: Any) -> None:
            self._take_identity((response.producer_id, response.producer_epoch))
            self._world.note("%s is initialised", str(self))
            self._rest()

        version = 6 if plan.is_two_phase else 5 if self._bumps else 4
        self._ask(ApiKey.INIT_PRODUCER_ID, version, lambda: requests.init(plan, known), requests.error_code, granted)

    def _take_identity(self, identity: Identity) -> None:
        self.identity = identity
        self._world.note_identity(self)
        self._sequences.clear()

    def _rest(self) -> None:
        self._is_uncertain = False
        if self._world.wants_more(self):
            self._later(self._world.think_ms(), self._begin)
        else:
            self.is_idle = True

    def _begin(self) -> None:
        world = self._world
        if self.member is not None and not self.member.is_ready:
            self._later(_BACKOFF_MS, self._rest)
            return
        self.open = world.ledger.begin(self.plan.transactional_id, self.name)
        self._added.clear()
        self._steps = [self._commit_offsets if kind == "offsets" else self._produce for kind in world.draw_steps(self)]
        if self.member is not None:
            self._held = self.member.hold()
            self._consumed = {}
            self._steps.insert(world.rng.randint(0, len(self._steps)), self._commit_consumed)
        world.note("%s begins transaction %s", str(self), self.open.number)
        self._next_step()

    def _next_step(self) -> None:
        if self._steps:
            self._later(self._world.think_ms(), self._steps.pop())
        else:
            self._later(self._world.think_ms(), lambda: self._end(commit=self._world.wants_commit()))

    def _give_up(self, api_key: ApiKey, code: int) -> None:
        """Abort the transaction, if that is allowed."""
        check_refusal(self._world, self, api_key, code)
        if self.member is not None and code in FENCED:
            self.member.refused(code)
        elif code not in _ABORTABLE and code not in _TRY_AGAIN:
            self.die(f"{api_key.name} is answered {ErrorCode(code).name}")
            return
        self._world.note("%s gives up on its transaction: %s", str(self), ErrorCode(code).name)
        self._is_uncertain = True
        self._end(commit=False)

    def _end(self, *, commit: bool) -> None:
        sent = self.open
        if sent is None:
            return
        sent.asked = commit
        identity = self.identity
        build = lambda: requests.end(self.plan.transactional_id, identity, commit=commit)  # noqa: E731

        def granted(response: Any) -> None:
            sent.told = commit
            self._world.counts["told commit" if commit else "told abort"] += 1
            self.open = None
            # A member that is fenced tries again.
            self.made += commit or self.member is None
            self._world.note("%s is told of %s", str(self), str(sent))
            if self.member is not None and self._held is not None:
                self.member.transaction_ended(self._held, self._consumed, is_commit=commit)
            if self._bumps:
                self._take_identity((response.producer_id, response.producer_epoch))
            if self._is_uncertain and not self._bumps:
                self._init(self.identity)
            else:
                self._rest()

        self._ask(ApiKey.END_TXN, 5 if self._bumps else 4, build, requests.error_code, granted, patience_ms=8_000)

    # ------------------------------------------------------------------------------------------------------ writing

    def _produce(self) -> None:
        partitions = self._world.draw_partitions()
        missing = [] if self._bumps else [each for each in partitions if each not in self._added]
        if not missing:
            self._send(partitions)
            return

        def granted(_response: Any) -> None:
            self._added.update(missing)
            self._send(partitions)

        identity = self.identity
        self._ask(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            lambda: requests.add_partitions(self.plan.transactional_id, identity, missing),
            requests.added,
            granted,
            patience_ms=3_000,
        )

    def _send(self, partitions: list[Partition]) -> None:
        """Send a batch to each partition: in one request, or in concurrent ones."""
        world = self._world
        if world.flight is not None:
            self._send_many(partitions, world.flight)
            return
        batches = {}
        for partition in partitions:
            sequence = self._sequences.get(partition, 0)
            values = [self.open.next_value() for _ in range(world.rng.choice((1, 1, 2)))] if self.open else []
            self._sequences[partition] = sequence + len(values)
            batches[partition] = sequence, values
        parts = [batches] if world.rng.random() < 0.5 else [{partition: batch} for partition, batch in batches.items()]
        left = len(parts)
        worst = 0

        def done(code: int) -> None:
            nonlocal left, worst
            left -= 1
            worst = worst or code
            if left or not self.is_alive:
                return
            if worst:
                self._give_up(ApiKey.PRODUCE, worst)
            else:
                self._next_step()

        for part in parts:
            self._send_part(part, world.clock.monotonic_ms() + world.plan.patience_ms, done)

    def _send_many(self, partitions: list[Partition], flight: FlightPlan) -> None:
        """Send several batches to each partition, without waiting for the answers."""
        world, sent, identity, now_ms = self._world, self.open, self.identity, self._world.clock.now_ms()
        version = 12 if self._bumps else world.rng.choice((9, 11))
        give_up_ms = world.clock.monotonic_ms() + world.plan.patience_ms

        def ask(connection: Connection, partition: Partition, batch: Batch, answered: Callable[[int], None]) -> None:
            request = requests.produce(self.plan.transactional_id, identity, {partition: (batch.sequence, batch.values)}, now_ms)
            world.network.produce_on(connection, self, version, request, lambda codes: answered(codes[partition]))

        def acknowledged(batch: Batch) -> None:
            if sent is not None:
                world.note_acknowledged(sent, batch.values)

        def done(code: int) -> None:
            if not self.is_alive:
                return
            if code:
                self._give_up(ApiKey.PRODUCE, code)
            else:
                self._next_step()

        pipelines = Pipelines(
            lambda cut: Connection(world.server, cut),
            ask,
            self._later,
            acknowledged,
            lambda code: code not in _TRY_AGAIN or self._is_hopeless(code, give_up_ms),
            done,
        )
        for partition in partitions:
            for _ in range(world.rng.randint(1, flight.most_batches)):
                sequence = self._sequences.get(partition, 0)
                values = [self.open.next_value() for _ in range(world.rng.choice((1, 1, 2)))] if self.open else []
                self._sequences[partition] = sequence + len(values)
                pipelines.add(partition, Batch(sequence, values))
        pipelines.start()

    def _send_part(
        self, batches: dict[Partition, tuple[int, list[bytes]]], give_up_ms: float, done: Callable[[int], None]
    ) -> None:
        world = self._world
        identity = self.identity
        sent = self.open
        now_ms = world.clock.now_ms()
        version = 12 if self._bumps else world.rng.choice((9, 11))

        def answered(codes: dict[Partition, int] | None) -> None:
            left = {}
            worst = 0
            for partition, batch in batches.items():
                code = ErrorCode.NETWORK_EXCEPTION if codes is None else codes[partition]
                if code == ErrorCode.NONE:
                    if sent is not None:
                        world.note_acknowledged(sent, batch[1])
                elif code in _TRY_AGAIN:
                    left[partition] = batch
                    if self._is_hopeless(code, give_up_ms):
                        worst = worst or code
                else:
                    worst = code
            if worst or not left:
                done(worst)
            else:
                self._later(_BACKOFF_MS, lambda: self._send_part(left, give_up_ms, done))

        world.network.ask(
            self,
            ApiKey.PRODUCE,
            version,
            lambda: requests.produce(self.plan.transactional_id, identity, batches, now_ms),
            answered,
        )

    def _commit_offsets(self) -> None:
        world = self._world
        offsets = {partition: world.ledger.next_offset(self.open) for partition in world.draw_partitions()}
        self._commit(world.rng.choice(world.plan.groups), offsets, None)

    def _commit_consumed(self) -> None:
        """As a member of the group."""
        held, world = self._held, self._world
        if held is None or not held.positions:
            self._next_step()
            return
        if self.member is not None and world.is_in_trouble:
            self.stalled_until_ms = max(self.stalled_until_ms, world.clock.monotonic_ms() + self.member.pause_ms())
        for index, after in held.positions.items():
            offset = self._consumed[TOPIC, index] = world.ledger.next_offset(self.open)
            world.witness.members.claim(offset, after, held)
        self._later(0, lambda: self._commit(GROUP_ID, self._consumed, held))

    def _commit(self, group_id: str, offsets: dict[Partition, int], held: Held | None) -> None:
        world = self._world
        sent = self.open
        identity = self.identity
        transactional_id = self.plan.transactional_id

        def granted(_response: Any) -> None:
            if sent is not None:
                sent.offsets += offsets.values()
            world.counts["offsets consumed"] += 0 if held is None else len(offsets)
            self._next_step()

        def commit(_response: Any = None) -> None:
            self._ask(
                ApiKey.TXN_OFFSET_COMMIT,
                5 if self._bumps else world.rng.choice((3, 4)),
                lambda: requests.txn_offset_commit(transactional_id, identity, group_id, offsets, held),
                requests.offsets_committed,
                granted,
                patience_ms=world.plan.patience_ms,
                failed=lambda code: self._give_up(ApiKey.TXN_OFFSET_COMMIT, code),
            )

        if self._bumps:
            commit()
            return
        self._ask(
            ApiKey.ADD_OFFSETS_TO_TXN,
            3,
            lambda: requests.add_offsets(transactional_id, identity, group_id),
            requests.error_code,
            commit,
        )
