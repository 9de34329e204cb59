"""A leader's followers: how far each is, which are in sync, and up to where the partition is replicated.

The in-sync replicas (ISR) are the controller's to change; the leader proposes (AlterPartition, KIP-497). One proposal is open at
a time. Until the controller has answered, the leader reckons with the maximal ISR: every replica that is in the ISR or is to be.
So whichever of the two is true, what counts as replicated is on all of them.

    expand    a follower outside has all up to the high watermark, and up to where this leader's epoch begins
    shrink    an in-sync replica has not caught up for replica.lag.time.max.ms

The high watermark is the lowest log end offset of the maximal ISR, and of followers that have caught up and may join: it waits
for these, or it would run away from them. It stands still while fewer than min.insync.replicas are in sync (KIP-966).

Pure: time, the brokers' registrations and the controller come in as arguments. Kafka's class is Partition.

What a leader knows of a follower it knows by its fetches (Kafka: Replica, ReplicaState). A fetch within a session names a
partition only if it has changed. Of the others the follower has by ``FetchTimes`` what it had before: nothing is written down for
a partition in which nothing happens.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from odradek.broker.replica.fetch_partitions import FetchTimes
from odradek.broker.replica.replication_quota import ReplicationQuota
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply

UNKNOWN_OFFSET = -1
# An epoch that was not told: the follower speaks a version of Fetch without it.
NO_EPOCH = -1


class FollowerState:
    """One follower, since this broker leads. Times are monotonic, in ms; ``broker_epoch`` is None before the first fetch."""

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
        """``caught_up_ms`` is now for an in-sync replica; for others long ago, so that they do not hold the high watermark."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self._caught_up_ms = caught_up_ms
        self.broker_epoch: int | None = None
        # The last fetch: when it came, and where the leader's log ended then.
        self._fetched_ms = 0.0
        self._leader_end_offset = UNKNOWN_OFFSET
        # The session of the last fetch. Its end offset holds for all later fetches of that session.
        self._times: FetchTimes | None = None

    @property
    def last_caught_up_ms(self) -> float:
        """The last time at which the follower is known to have had everything."""
        if self._times is None or self.log_end_offset < self._leader_end_offset:
            return self._caught_up_ms
        return max(self._caught_up_ms, self._times.last_ms)

    def reconsider(self) -> None:
        """A fetch is about to be read that may say something else than the one before, or be refused."""
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
        """The follower asks for the records from ``offset`` on, and so has all in front of it.

        It has caught up if that is the leader's end, or was at the fetch before: while others write all the time, no fetch would
        ever be at the end.
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


# The controller has the ISR that was there before the proposal; with any other error, nobody knows until the metadata tell.
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
    """An ISR that the leader asks for: broker ids with their epochs, -1 for one that is not known."""

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
    """What the leader of a partition needs of its broker."""

    node_id: int
    # ``replica.lag.time.max.ms``.
    max_lag_ms: int
    # What followers may take, of the partitions that are throttled here. None: as much as they like.
    leader_quota: ReplicationQuota | None

    def monotonic_ms(self) -> float:
        """The time."""

    def broker_epoch(self, node_id: int) -> int | None:
        """The epoch of a broker that may be in sync: registered, not fenced, not shutting down. None for any other."""

    def alter_partition(self, proposal: Proposal) -> Reply[CommittedIsr | KafkaError]:
        """Ask the controller. The Reply is completed later: a proposal that failed for no lasting reason is made again then."""


class Isr(NamedTuple):
    """The ISR that the controller has, and the one that is proposed, if one is."""

    committed: frozenset[int]
    proposed: frozenset[int] | None = None

    @property
    def maximal(self) -> frozenset[int]:
        """Every replica that is in one of them."""
        return self.committed if self.proposed is None else self.committed | self.proposed


class InSyncReplicas:
    """Those of one partition, for one epoch of this leader's. Loop thread only."""

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
        """``epoch_start_offset`` is where the log ended when this broker was elected; ``min_in_sync``: ``min.insync.replicas``.

        ``on_change`` is called when the controller has answered: the high watermark may move.
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

    # -------------------------------------------------------------------------------------------------- what counts as replicated

    def high_watermark(self, own_offset: int, log_end_offset: int, high_watermark: int) -> int:
        """Up to where the partition is replicated: ``own_offset`` is up to where this broker has it."""
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
        """How many replicas there are, the leader among them."""
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
        """KafkaError: NOT_ENOUGH_REPLICAS, for an append with acks=all."""
        if self.is_under_min_isr:
            in_sync = sorted(self.isr.committed)
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS, f"in sync are {in_sync}, and min.insync.replicas is {self.min_in_sync}"
            )

    @property
    def has_enough(self) -> bool:
        """Return whether what was appended with acks=all may be acknowledged: NOT_ENOUGH_REPLICAS_AFTER_APPEND where not."""
        return len(self.isr.maximal) >= self.min_in_sync

    # ---------------------------------------------------------------------------------------------------------------- followers

    def follower(self, node_id: int) -> FollowerState | None:
        """A follower's state; None for a broker that has no replica."""
        return self._followers.get(node_id)

    def start_offset_of(self, node_id: int) -> int:
        """Where a follower's log begins; UNKNOWN_OFFSET while it has not fetched, or has no replica."""
        follower = self._followers.get(node_id)
        return UNKNOWN_OFFSET if follower is None else follower.log_start_offset

    def low_watermark(self, log_start_offset: int) -> int:
        """The least of ``log_start_offset``, which is the leader's, and of the followers' that live."""
        followers = self._followers.items()
        alive = [each.log_start_offset for node_id, each in followers if self._replication.broker_epoch(node_id) is not None]
        return min(log_start_offset, *alive) if alive else log_start_offset

    @property
    def leader_quota(self) -> ReplicationQuota | None:
        """What followers may take."""
        return self._replication.leader_quota

    def readable_at(self, offset: int) -> Iterator[tuple[int, FollowerState]]:
        """The followers that are in sync and have the log at ``offset``, by their ids."""
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
        """A follower asks for the records from ``offset`` on.

        KafkaError: UNKNOWN_LEADER_EPOCH for a broker without a replica, as far as this leader knows; NOT_LEADER_OR_FOLLOWER for
        an incarnation of it that is no more.
        """
        follower = self._followers.get(node_id)
        if follower is None:
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"broker {node_id} has no replica by what this leader knows")
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
        """Propose the ISR without the replicas that have fallen behind; to be called every now and then."""
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
        """The metadata tell of a change within the same epoch of the leader: a proposal is over, whatever was answered to it."""
        if partition_epoch > self._partition_epoch:
            self.isr = Isr(frozenset(isr))
            self._partition_epoch = partition_epoch
            self._set_replicas(replicas)
            self._on_change()

    def _propose(self, isr: frozenset[int]) -> None:
        self.isr = Isr(self.isr.committed, isr)
        self._submit(Proposal(*self._key, self._leader_epoch, self._partition_epoch, tuple(map(self._with_epoch, sorted(isr)))))

    def _with_epoch(self, node_id: int) -> tuple[int, int]:
        """An in-sync replica that has not fetched yet has no epoch: if it dies, the controller takes it out by itself."""
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
            # The metadata were faster.
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
