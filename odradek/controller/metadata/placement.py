"""Placement of new topics' partitions: on assigned brokers, or striped over all of them.

Striped replicas go round the racks, and round the brokers of each rack (Kafka: StripedReplicaPlacer).

Each partition starts one rack further than the previous one, and in each rack one broker further. The first start is random. The
first replica, the leader, is on an unfenced broker. In a rack, fenced brokers come last. Once as many partitions are placed as
there are unfenced brokers, the order is shuffled, so that the same brokers do not always share partitions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple
from uuid import UUID

from odradek.controller.metadata.cluster_view import ClusterView
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord

# The least number of directories to choose between.
_CHOICE = 2


class PlacedPartition(NamedTuple):
    """The brokers of a partition, its in-sync brokers (the first one leads), and the directory of each replica."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[UUID, ...]


class PlacedBroker(NamedTuple):
    """A broker with its rack, as a candidate for replicas."""

    broker_id: int
    rack: str | None
    is_fenced: bool


class _Ring:
    """A ring of brokers. Each partition (``turn``) starts at the next one."""

    def __init__(self, brokers: Iterable[int], random: Random) -> None:
        self._brokers = sorted(brokers)
        self._start = random.randrange(len(self._brokers)) if self._brokers else 0
        self._taken = 0
        self._turn = 0

    def take(self, turn: int) -> int | None:
        """Return the next broker for a partition; None once it has got all."""
        if self._brokers and turn != self._turn:
            self._turn = turn
            self._taken = 0
            self._start = (self._start + 1) % len(self._brokers)
        if self._taken >= len(self._brokers):
            return None
        self._taken += 1
        return self._brokers[(self._start + self._taken - 1) % len(self._brokers)]

    def shuffle(self, random: Random) -> None:
        """Shuffle the brokers."""
        random.shuffle(self._brokers)


class _Rack:
    def __init__(self, brokers: list[PlacedBroker], random: Random) -> None:
        self.unfenced = _Ring((each.broker_id for each in brokers if not each.is_fenced), random)
        self.fenced = _Ring((each.broker_id for each in brokers if each.is_fenced), random)

    def take(self, turn: int) -> int | None:
        """Return the next broker for a partition, fenced ones last."""
        broker = self.unfenced.take(turn)
        return self.fenced.take(turn) if broker is None else broker


class StripedPlacer:
    """Places the partitions of one topic on ``brokers``."""

    def __init__(self, brokers: Iterable[PlacedBroker], random: Random) -> None:
        by_rack: dict[str | None, list[PlacedBroker]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        self._random = random
        self._racks = [_Rack(by_rack[name], random) for name in sorted(by_rack, key=lambda name: (name is not None, name or ""))]
        self._broker_count = sum(len(found) for found in by_rack.values())
        self._unfenced_count = sum(not broker.is_fenced for found in by_rack.values() for broker in found)
        self._first_rack = random.randrange(len(self._racks)) if self._racks else 0
        self._turn = 0

    def place(self, partition_count: int, replication_factor: int) -> list[tuple[int, ...]]:
        """Return the replicas of each partition. KafkaError: INVALID_REPLICATION_FACTOR."""
        self._ensure_enough(replication_factor)
        return [self._place_one(replication_factor) for _ in range(partition_count)]

    def _ensure_enough(self, replication_factor: int) -> None:
        problem = None
        if replication_factor <= 0:
            problem = "the replication factor must be positive"
        elif not self._unfenced_count:
            problem = "all brokers are fenced"
        elif replication_factor > self._broker_count:
            problem = f"only {self._broker_count} broker(s) are registered"
        if problem is not None:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR, f"No partition can be replicated {replication_factor} time(s): {problem}."
            )

    def _place_one(self, replication_factor: int) -> tuple[int, ...]:
        # With one unfenced broker there is nothing to shuffle.
        if self._turn and self._unfenced_count > 1 and self._turn % self._unfenced_count == 0:
            self._shuffle()
        racks = self._racks[self._first_rack :] + self._racks[: self._first_rack]
        # The rack that provided the leader is skipped the first time.
        leader, gave = next(
            (broker, place) for place, rack in enumerate(racks) if (broker := rack.unfenced.take(self._turn)) is not None
        )
        replicas = [leader]
        place = 0
        passed_over: int | None = gave
        while len(replicas) < replication_factor:
            if place == passed_over:
                passed_over = None
            elif (broker := racks[place].take(self._turn)) is not None:
                replicas.append(broker)
            place = (place + 1) % len(racks)
        self._turn += 1
        self._first_rack = (self._first_rack + 1) % len(racks)
        return tuple(replicas)

    def _shuffle(self) -> None:
        self._random.shuffle(self._racks)
        for rack in self._racks:
            rack.unfenced.shuffle(self._random)
            rack.fenced.shuffle(self._random)


class Placement:
    """Places partitions on the brokers of ``view``, and knows the defaults of a topic."""

    def __init__(
        self,
        view: ClusterView,
        usable: Callable[[], Mapping[int, bool]],
        random: Random,
        directory_counts: Callable[[], dict[UUID, int]] | None = None,
    ) -> None:
        """``usable`` returns the brokers that new replicas may go to, and whether each of them is fenced.

        ``directory_counts`` returns the number of partitions in each data directory of this node, by directory id; None for a
        node that is no broker. Other brokers choose a directory themselves.
        """
        self.view = view
        self.random = random
        self.directory_counts = directory_counts
        self._usable = usable

    @property
    def default_partitions(self) -> int:
        """Partitions of a topic."""
        return int(self.view.config["num.partitions"])

    @property
    def default_replication_factor(self) -> int:
        """Replicas of a partition."""
        return int(self.view.config["default.replication.factor"])

    def brokers(self) -> list[PlacedBroker]:
        """Return the brokers that new replicas may go to."""
        known = self.view.brokers
        return [
            PlacedBroker(broker_id, known[broker_id].rack, is_fenced)
            for broker_id, is_fenced in self._usable().items()
            if _takes_replicas(known[broker_id])
        ]

    def begin(self) -> "Placing":
        """Begin to place what one decision creates."""
        return Placing(self)


class Placing:
    """The placement of what one decision creates. A partition added to a directory counts for the next choice."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._view = placement.view
        self._counts: dict[UUID, int] | None = None

    def assigned(self, replicas: Sequence[int], replication_factor: int | None) -> PlacedPartition:
        """Return a partition on ``replicas``, whose number must match. KafkaError: INVALID_REPLICA_ASSIGNMENT."""
        ensure_assignment(replicas, self._view.brokers, replication_factor)
        placed = self._placed_on(replicas)
        if not placed.isr:
            reason = f"All brokers of the assignment {list(replicas)} are fenced or in controlled shutdown."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        return placed

    def placed(self, partition_count: int, replication_factor: int) -> Sequence[PlacedPartition]:
        """The partitions of one topic. KafkaError: INVALID_REPLICATION_FACTOR."""
        striped = StripedPlacer(self._placement.brokers(), self._placement.random).place(partition_count, replication_factor)
        placed = [self._placed_on(replicas) for replicas in striped]
        if not all(each.isr for each in placed):
            reason = f"No partition can be replicated {replication_factor} time(s): no broker of one is active."
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
        return placed

    def _placed_on(self, replicas: Sequence[int]) -> PlacedPartition:
        isr = tuple(replica for replica in replicas if self._view.is_active(replica))
        return PlacedPartition(tuple(replicas), isr, tuple(self._directory(replica) for replica in replicas))

    def _directory(self, broker_id: int) -> UUID:
        """The directory of a new replica: on this node the one with the fewest partitions."""
        directory_counts = self._placement.directory_counts
        if directory_counts is None or broker_id != self._view.node_id:
            return self._view.default_directory(broker_id)
        if self._counts is None:
            self._counts = directory_counts()
        if len(self._counts) < _CHOICE:
            return self._view.default_directory(broker_id)
        chosen = min(self._counts, key=self._counts.__getitem__)
        self._counts[chosen] += 1
        return chosen


def _takes_replicas(broker: RegisterBrokerRecord) -> bool:
    """Return whether the broker has a directory that is not cordoned."""
    return not broker.log_dirs or not set(broker.log_dirs) <= set(broker.cordoned_log_dirs or ())


def ensure_assignment(
    replicas: Sequence[int], brokers: Mapping[int, RegisterBrokerRecord], replication_factor: int | None = None
) -> None:
    """Raise KafkaError(INVALID_REPLICA_ASSIGNMENT) if a partition cannot have its replicas on the brokers ``replicas``.

    ``brokers`` has the registrations by id. A broker whose directories are all cordoned takes no replica.
    """
    problem = None
    if not replicas:
        problem = "An assignment must name brokers."
    for previous, replica in zip((None, *sorted(replicas)), sorted(replicas), strict=False):
        if replica not in brokers:
            problem = f"There is no broker {replica} to assign a replica to."
            break
        if not _takes_replicas(brokers[replica]):
            problem = f"All log directories of broker {replica} are cordoned."
            break
        if replica == previous:
            problem = f"Broker {replica} can have only one replica of a partition."
            break
    if problem is None and replication_factor is not None and len(replicas) != replication_factor:
        problem = f"The assignment has {len(replicas)} replicas, but other partitions have {replication_factor}."
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
