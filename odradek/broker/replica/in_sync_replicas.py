"""A leader's followers: how far each one is, which are in sync, and up to which offset the partition is replicated.

Only the controller changes the in-sync replicas (ISR); the leader proposes changes (AlterPartition, KIP-497). One proposal is
open at a time. Until the controller has answered, the leader uses the maximal ISR: every replica that is in the ISR or proposed
for it. So a record that counts as replicated is on all in-sync replicas, whether the proposal is accepted or not.

    expand    a follower outside the ISR has everything up to the high watermark, and up to where this leader's epoch begins
    shrink    an in-sync replica has not caught up for replica.lag.time.max.ms

The high watermark is the lowest log end offset of the maximal ISR, and of caught-up followers that may join. Without waiting for
these, it would run away from them. It does not move while fewer than min.insync.replicas are in sync (KIP-966).

Pure: time, the brokers' registrations and the controller come in as arguments. Kafka's class is Partition.

A leader knows a follower's state only from its fetches (Kafka: Replica, ReplicaState). A fetch within a session names a partition
only if it has changed. For the other partitions, ``FetchTimes`` of the session says that the follower still has all it had. So
an unchanged partition costs no bookkeeping.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from odradek.broker.replica.fetch_partitions import FetchTimes
from odradek.broker.replica.replication_quota import ReplicationQuota
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply

UNKNOWN_OFFSET = -1
# The epoch of a follower that uses a version of Fetch without epochs.
NO_EPOCH = -1


class FollowerState:
    """One follower, for as long as this broker leads. Times are monotonic, in ms.

    ``broker_epoch`` is None before the first fetch.
    """

    __slots__ = (
        "_caught_up_ms",
        "_fetched_ms",
        "_leader_end_offset",
        "_times",
        "broker_epoch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, *, caught_up_ms: float) -> None:
        """``caught_up_ms`` is now for an in-sync replica, and long ago for others: they must not hold back the high watermark."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self._caught_up_ms = caught_up_ms
        self.broker_epoch: int | None = None
        # The last fetch: its time, and the leader's log end offset at that time.
        self._fetched_ms = 0.0
        self._leader_end_offset = UNKNOWN_OFFSET
        # The session of the last fetch. The follower's end offset holds for all later fetches of that session.
        self._times: FetchTimes | None = None

    @property
    def last_caught_up_ms(self) -> float:
        """The last time at which the follower is known to have had everything."""
        if self._times is None or self.log_end_offset < self._leader_end_offset:
            return self._caught_up_ms
        return max(self._caught_up_ms, self._times.last_ms)

    def reconsider(self) -> None:
        """Detach from the session's times before a fetch is read: it may differ from the last one, or be refused."""
        self._caught_up_ms = self.last_caught_up_ms
        if self._times is not None:
            self._fetched_ms = max(self._fetched_ms, self._times.last_ms)
            self._times = None

    def fetched(
        self,
        offset: int,
        log_start_offset: int,
        *,
        broker_epoch: int,
        leader_end_offset: int,
        now_ms: float,
        times: FetchTimes | None = None,
    ) -> None:
        """Note a fetch of the records from ``offset`` on: the follower has everything before it.

        It has caught up if ``offset`` is the leader's end, or was the end at the fetch before. Under constant writes no fetch
        would ever be at the current end.
        """
        self.reconsider()
        if offset >= leader_end_offset:
            self._caught_up_ms = max(self._caught_up_ms, now_ms)
        elif offset >= self._leader_end_offset:
            self._caught_up_ms = max(self._caught_up_ms, self._fetched_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._fetched_ms = now_ms
        self._leader_end_offset = max(self._leader_end_offset, leader_end_offset)
        self._times = times

    def is_caught_up(self, leader_end_offset: int, now_ms: float, max_lag_ms: float) -> bool:
        """Return whether the follower has everything, or had it within ``replica.lag.time.max.ms``."""
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= max_lag_ms


# The controller still has the old ISR. After any other error, the ISR is unknown until the next metadata.
_NOT_APPLIED: Final = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)
# Errors that the next metadata resolve.
_STALE: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
# Long ago.
_NEVER_MS: Final = float("-inf")


class Proposal(NamedTuple):
    """An ISR that the leader asks for: broker ids with their epochs, -1 for an unknown epoch."""

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]


class CommittedIsr(NamedTuple):
    """An ISR as the controller has it."""

    leader_epoch: int
    partition_epoch: int
    isr: frozenset[int]


class Replication(Protocol):
    """The interface through which a partition's leader uses its broker."""

    node_id: int
    # ``replica.lag.time.max.ms``.
    max_lag_ms: int
    # Limits what followers fetch of throttled partitions. None: no limit.
    leader_quota: ReplicationQuota | None

    def monotonic_ms(self) -> float:
        """Return the time."""

    def broker_epoch(self, node_id: int) -> int | None:
        """Return the epoch of a broker that may be in sync: registered, not fenced, not shutting down. None for any other."""

    def alter_partition(self, proposal: Proposal) -> Reply[CommittedIsr | KafkaError]:
        """Ask the controller. The Reply completes later: after a transient error, the leader then proposes again."""


class Isr(NamedTuple):
    """The controller's ISR, and the proposed one if a proposal is open."""

    committed: frozenset[int]
    proposed: frozenset[int] | None = None

    @property
    def maximal(self) -> frozenset[int]:
        """Return every replica that is in one of the two."""
        return self.committed if self.proposed is None else self.committed | self.proposed


class InSyncReplicas:
    """The in-sync replicas of one partition, for one epoch of its leader. Loop thread only."""

    __slots__ = (
        "_followers",
        "_key",
        "_leader_epoch",
        "_min_in_sync",
        "_on_change",
        "_partition_epoch",
        "_replication",
        "epoch_start_offset",
        "isr",
    )

    def __init__(
        self,
        replication: Replication,
        *,
        topic_id: UUID,
        partition: int,
        leader_epoch: int,
        partition_epoch: int,
        replicas: Iterable[int],
        isr: Iterable[int],
        epoch_start_offset: int,
        min_in_sync: Callable[[], int],
        on_change: Callable[[], object],
    ) -> None:
        """Begin an epoch of the leader. ``epoch_start_offset`` is where the log ended when this broker was elected.

        ``min_in_sync`` returns ``min.insync.replicas``. ``on_change`` is called when the controller has answered: the high
        watermark may move.
        """
        self.isr = Isr(frozenset(isr))
        self._replication = replication
        self._key = topic_id, partition
        self._leader_epoch = leader_epoch
        self._partition_epoch = partition_epoch
        self.epoch_start_offset = epoch_start_offset
        self._min_in_sync = min_in_sync
        self._on_change = on_change
        self._followers: dict[int, FollowerState] = {}
        self._set_replicas(replicas)

    # --------------------------------------------------------------------------------------------------------- replicated offsets

    def high_watermark(self, own_offset: int, log_end_offset: int, high_watermark: int) -> int:
        """Return the offset up to which the partition is replicated; this broker has it up to ``own_offset``."""
        if self.is_under_min_isr:
            return high_watermark
        now_ms = self._replication.monotonic_ms()
        maximal = self.isr.maximal
        for node_id, follower in self._followers.items():
            if follower.log_end_offset < own_offset and (
                node_id in maximal
                or (
                    follower.is_caught_up(log_end_offset, now_ms, self._replication.max_lag_ms)
                    and self._is_eligible(node_id, follower)
                )
            ):
                own_offset = follower.log_end_offset
        return max(own_offset, high_watermark)

    @property
    def replica_count(self) -> int:
        """The number of replicas, including the leader."""
        return len(self._followers) + 1

    @property
    def min_in_sync(self) -> int:
        """``min.insync.replicas``, or the number of replicas if that is less."""
        return min(self._min_in_sync(), self.replica_count)

    @property
    def is_under_min_isr(self) -> bool:
        """Return whether fewer replicas are in sync than acks=all asks for."""
        return len(self.isr.committed) < self.min_in_sync

    def require_enough(self) -> None:
        """Raise NOT_ENOUGH_REPLICAS if an append with acks=all must be refused."""
        if self.is_under_min_isr:
            in_sync = sorted(self.isr.committed)
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"the in-sync replicas are {in_sync}, but min.insync.replicas is {self.min_in_sync}",
            )

    @property
    def has_enough(self) -> bool:
        """Return whether an append with acks=all may be acknowledged; if not, the answer is NOT_ENOUGH_REPLICAS_AFTER_APPEND."""
        return len(self.isr.maximal) >= self.min_in_sync

    # ---------------------------------------------------------------------------------------------------------------- followers

    def follower(self, node_id: int) -> FollowerState | None:
        """Return a follower's state; None for a broker that has no replica."""
        return self._followers.get(node_id)

    def start_offset_of(self, node_id: int) -> int:
        """Return where a follower's log begins; UNKNOWN_OFFSET if it has not fetched yet, or has no replica."""
        follower = self._followers.get(node_id)
        return UNKNOWN_OFFSET if follower is None else follower.log_start_offset

    def low_watermark(self, log_start_offset: int) -> int:
        """Return the lowest of the leader's ``log_start_offset`` and those of the live followers."""
        followers = self._followers.items()
        alive = [each.log_start_offset for node_id, each in followers if self._replication.broker_epoch(node_id) is not None]
        return min(log_start_offset, *alive) if alive else log_start_offset

    @property
    def leader_quota(self) -> ReplicationQuota | None:
        """The quota of followers on throttled partitions."""
        return self._replication.leader_quota

    def readable_at(self, offset: int) -> Iterator[tuple[int, FollowerState]]:
        """Yield the in-sync followers whose logs contain ``offset``, by their ids."""
        for node_id, follower in self._followers.items():
            if node_id in self.isr.committed and follower.log_start_offset <= offset <= follower.log_end_offset:
                yield node_id, follower

    def fetched(
        self,
        node_id: int,
        broker_epoch: int,
        offset: int,
        log_start_offset: int,
        *,
        log_end_offset: int,
        high_watermark: int,
        times: FetchTimes | None = None,
    ) -> None:
        """Note that a follower asks for the records from ``offset`` on, and propose it for the ISR if it may join.

        KafkaError: UNKNOWN_LEADER_EPOCH for a broker without a replica, as far as this leader knows; NOT_LEADER_OR_FOLLOWER for
        an old incarnation of the broker.
        """
        follower = self._followers.get(node_id)
        if follower is None:
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"this leader knows no replica on broker {node_id}")
        known_epoch = self._replication.broker_epoch(node_id)
        if broker_epoch != NO_EPOCH and known_epoch is not None and known_epoch > broker_epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {node_id} has epoch {known_epoch}, not {broker_epoch}")
        follower.fetched(
            offset,
            log_start_offset,
            broker_epoch=broker_epoch,
            leader_end_offset=log_end_offset,
            now_ms=self._replication.monotonic_ms(),
            times=times,
        )
        is_outside = self.isr.proposed is None and node_id not in self.isr.committed
        if is_outside and offset >= max(high_watermark, self.epoch_start_offset) and self._is_eligible(node_id, follower):
            self._propose(self.isr.committed | {node_id})

    def shrink(self, log_end_offset: int) -> None:
        """Propose the ISR without the replicas that have fallen behind; to be called periodically."""
        if self.isr.proposed is not None:
            return
        now_ms = self._replication.monotonic_ms()
        behind = {
            node_id
            for node_id in self.isr.committed - {self._replication.node_id}
            if (follower := self._followers.get(node_id)) is None
            or not follower.is_caught_up(log_end_offset, now_ms, self._replication.max_lag_ms)
        }
        if behind:
            self._propose(self.isr.committed - behind)

    def _is_eligible(self, node_id: int, follower: FollowerState) -> bool:
        epoch = self._replication.broker_epoch(node_id)
        return epoch is not None and follower.broker_epoch in (NO_EPOCH, epoch)

    # --------------------------------------------------------------------------------------------------------------- controller

    def committed(self, replicas: Iterable[int], isr: Iterable[int], partition_epoch: int) -> None:
        """Apply a metadata change within the same leader epoch. It ends an open proposal, whatever the controller's answer is."""
        if partition_epoch > self._partition_epoch:
            self.isr = Isr(frozenset(isr))
            self._partition_epoch = partition_epoch
            self._set_replicas(replicas)
            self._on_change()

    def _propose(self, isr: frozenset[int]) -> None:
        self.isr = Isr(self.isr.committed, isr)
        self._submit(Proposal(*self._key, self._leader_epoch, self._partition_epoch, tuple(map(self._with_epoch, sorted(isr)))))

    def _with_epoch(self, node_id: int) -> tuple[int, int]:
        """Return a replica with its epoch, NO_EPOCH before its first fetch: if it dies, the controller removes it by itself."""
        if node_id == self._replication.node_id:
            epoch = self._replication.broker_epoch(node_id)
        else:
            follower = self._followers.get(node_id)
            epoch = None if follower is None else follower.broker_epoch
        return node_id, NO_EPOCH if epoch is None else epoch

    def _submit(self, proposal: Proposal) -> None:
        proposed = self.isr.proposed
        self._replication.alter_partition(proposal).when_done(lambda outcome: self._answered(proposal, proposed, outcome))

    def _answered(self, proposal: Proposal, proposed: frozenset[int] | None, outcome: CommittedIsr | KafkaError) -> None:
        if self.isr.proposed is not proposed:
            # The metadata arrived before the answer.
            return
        if isinstance(outcome, KafkaError):
            if outcome.code in _NOT_APPLIED:
                self.isr = Isr(self.isr.committed)
            elif outcome.code not in _STALE:
                self._submit(proposal)
        elif outcome.leader_epoch == self._leader_epoch and outcome.partition_epoch >= self._partition_epoch:
            self.isr = Isr(outcome.isr)
            self._partition_epoch = outcome.partition_epoch
            self._on_change()

    def _set_replicas(self, replicas: Iterable[int]) -> None:
        others = [node_id for node_id in replicas if node_id != self._replication.node_id]
        now_ms = self._replication.monotonic_ms()
        for node_id in others:
            if node_id not in self._followers:
                is_in_sync = node_id in self.isr.committed
                self._followers[node_id] = FollowerState(caught_up_ms=now_ms if is_in_sync else _NEVER_MS)
        for node_id in self._followers.keys() - set(others):
            del self._followers[node_id]
