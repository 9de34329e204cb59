"""Placement of new topics' partitions: the interface, and a broker alone, which has all of them.

Some directory ids name no directory (KIP-858).
"""

from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import UUID

from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord


class PlacedPartition(NamedTuple):
    """The brokers of a partition, those of them that are in sync, the first of which leads, and the directory of each replica."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[UUID, ...]


class Placing(Protocol):
    """Places what one decision creates."""

    def assigned(self, replicas: Sequence[int], replication_factor: int | None) -> PlacedPartition:
        """A partition on ``replicas``, which are to be so many. KafkaError: INVALID_REPLICA_ASSIGNMENT."""

    def placed(self, partition_count: int, replication_factor: int) -> Sequence[PlacedPartition]:
        """The partitions of one topic. KafkaError: INVALID_REPLICATION_FACTOR."""


class Placement(Protocol):
    """Places partitions, and says what is created where nothing is asked."""

    @property
    def default_partitions(self) -> int:
        """Partitions of a topic."""

    @property
    def default_replication_factor(self) -> int:
        """Replicas of a partition."""

    def begin(self) -> Placing:
        """Of one decision."""


class PlacementHere(NamedTuple):
    """All partitions are on this broker: its id, its directories, and the defaults for what is not asked.

    ``directory_counts`` tells how many partitions there are in each directory that works, by its id.
    """

    node_id: int
    directory_counts: Callable[[], dict[UUID, int]]
    default_partitions: int
    default_replication_factor: int

    def begin(self) -> Placing:
        """Part of Placement."""
        return _PlacingHere(self)


class _PlacingHere:
    """Chooses a directory for each new partition: the one with the fewest, those among them that this very decision adds."""

    def __init__(self, placement: PlacementHere) -> None:
        self._node_id = placement.node_id
        self._counts_now = placement.directory_counts
        self._counts: dict[UUID, int] | None = None

    def assigned(self, replicas: Sequence[int], replication_factor: int | None) -> PlacedPartition:
        """Part of Placing."""
        ensure_assignment(replicas, (self._node_id,), replication_factor)
        return self._place()

    def placed(self, partition_count: int, replication_factor: int) -> Sequence[PlacedPartition]:
        """Part of Placing."""
        if replication_factor > 1:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"A replication factor of {replication_factor} needs as many brokers, and there is one.",
            )
        return [self._place() for _ in range(partition_count)]

    def _place(self) -> PlacedPartition:
        here = (self._node_id,)
        return PlacedPartition(here, here, (self._choose_directory(),))

    def _choose_directory(self) -> UUID:
        """Raises KafkaError where no directory works."""
        if self._counts is None:
            self._counts = self._counts_now()
        if not self._counts:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "No data directory works.")
        if len(self._counts) == 1:
            return next(iter(self._counts))
        chosen = min(self._counts, key=self._counts.__getitem__)
        self._counts[chosen] += 1
        return chosen


def ensure_assignment(replicas: Sequence[int], brokers: Container[int], replication_factor: int | None = None) -> None:
    """Raise KafkaError(INVALID_REPLICA_ASSIGNMENT) where a partition cannot have its replicas on the brokers ``replicas``.

    ``brokers`` are those there are.
    """
    problem = None
    if not replicas:
        problem = "An assignment without brokers is none."
    for previous, replica in zip((None, *sorted(replicas)), sorted(replicas), strict=False):
        if replica not in brokers:
            problem = f"There is no broker {replica} to assign a replica to."
            break
        if replica == previous:
            problem = f"Broker {replica} can have one replica of a partition only."
            break
    if problem is None and replication_factor is not None and len(replicas) != replication_factor:
        problem = f"An assignment of {len(replicas)} replicas, where other partitions have {replication_factor}."
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


# The replica is of a time before directories had ids, has no place yet, or its place is lost.
MIGRATING: Final = UUID(int=0)
UNASSIGNED: Final = UUID(int=1)
LOST: Final = UUID(int=2)
_FIRST_FREE: Final = 100


def is_reserved(directory: UUID | None) -> bool:
    """Return whether an id can never be a directory's."""
    return directory is None or directory.int < _FIRST_FREE


def has_online(broker: "RegisterBrokerRecord", directory: UUID) -> bool:
    """Return whether a directory of ``broker`` is not known to be offline: before KIP-858 none is registered."""
    if directory in (MIGRATING, UNASSIGNED):
        return True
    return directory != LOST and (not broker.log_dirs or directory in broker.log_dirs)


def default_directory(broker: "RegisterBrokerRecord | None") -> UUID:
    """The directory of a replica that is new on ``broker``: the broker chooses, unless it has only one."""
    if broker is None:
        return UNASSIGNED
    if not broker.log_dirs:
        return MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED
