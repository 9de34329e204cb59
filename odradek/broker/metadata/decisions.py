"""What the controller decides about topics: pure functions from the image and a request to records and answers.

Nothing here changes anything: the controller appends the records of a ``Decision``, and replaying them makes it so. The
errors, and the order in which they are looked for, are those of Kafka's ``ReplicationControlManager``.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from odradek.broker.metadata.image import TOPIC_RESOURCE, MetadataImage
from odradek.broker.metadata.topic import Topic
from odradek.broker.metadata.topic_names import CLUSTER_METADATA_TOPIC, validate_topic_name
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
)

MAX_PARTITIONS_PER_REQUEST = 10_000  # Kafka's limit
# Topics that are decided on without an interruption: less than a millisecond.
_TOPICS_TOGETHER = 100

Assignments = Sequence[tuple[int, Sequence[int]]]


class NewTopic(NamedTuple):
    """A topic asked for. -1 is the broker's default; ``assignments`` are pairs of partition and broker ids."""

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignments: Assignments = ()
    configs: Sequence[tuple[str, str | None]] = ()


class NewPartitions(NamedTuple):
    """A topic asked to grow to ``partition_count`` partitions.

    ``assignments`` are the broker ids of each new one, None for automatic.
    """

    name: str
    partition_count: int
    assignments: Sequence[Sequence[int]] | None = None


class TopicResult(NamedTuple):
    """The answer for one topic: ``error`` is None where it was, or would be, done."""

    name: str
    topic_id: UUID | None = None
    partition_count: int = -1
    error: KafkaError | None = None


class Decision(NamedTuple):
    """Records to append, and the answers to give once they are."""

    records: list[MetadataRecord]
    results: list[TopicResult]


class Placement(NamedTuple):
    """Where partitions go, which is this broker: its id, its directories, and the defaults for what is not asked.

    ``directory_counts`` tells how many partitions there are in each directory that works, by its id.
    """

    node_id: int
    directory_counts: Callable[[], dict[UUID, int]]
    default_partitions: int
    default_replication_factor: int


class _Directories:
    """Chooses a directory for each new partition: the one with the fewest, those among them that this very decision adds."""

    def __init__(self, placement: Placement) -> None:
        self._counts_now = placement.directory_counts
        self._counts: dict[UUID, int] | None = None

    def choose(self) -> UUID:
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


def deciding_on_topics(
    image: MetadataImage,
    topics: Sequence[NewTopic],
    placement: Placement,
    validate_configs: Callable[[Mapping[str, str]], None],
    new_topic_id: Callable[[], UUID],
) -> Generator[None, None, Decision]:
    """Decide on ``topics``, each by itself; ``validate_configs`` raises KafkaError(INVALID_CONFIG). It can be left in between."""
    asked = sum(_partitions_asked(topic, placement) for topic in topics)
    if asked > MAX_PARTITIONS_PER_REQUEST:
        return Decision([], [TopicResult(name=topic.name, error=_too_many_partitions()) for topic in topics])
    decision = Decision([], [])
    directories = _Directories(placement)
    times_named = Counter(topic.name for topic in topics)
    for place, topic in enumerate(topics):
        if place % _TOPICS_TOGETHER == _TOPICS_TOGETHER - 1:
            yield
        if times_named[topic.name] > 1:
            continue
        try:
            partition_count = _ensure_creatable(image, topic, placement, validate_configs)
        except KafkaError as error:
            decision.results.append(TopicResult(name=topic.name, error=error))
            continue
        topic_id = new_topic_id()
        decision.records.append(TopicRecord(name=topic.name, topic_id=topic_id))
        decision.records.extend(
            ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value)
            for name, value in dict(topic.configs).items()
        )
        decision.records.extend(
            _partition_record(topic_id, partition, placement.node_id, directories.choose())
            for partition in range(partition_count)
        )
        decision.results.append(TopicResult(name=topic.name, topic_id=topic_id, partition_count=partition_count))
    decision.results.extend(_duplicates(times_named))
    return decision


def create_partitions(image: MetadataImage, topics: Sequence[NewPartitions], placement: Placement) -> Decision:
    """Decide on more partitions for ``topics``, each by itself."""
    decision = Decision([], [])
    directories = _Directories(placement)
    times_named = Counter(topic.name for topic in topics)
    decision.results.extend(_duplicates(times_named))
    for asked in topics:
        if times_named[asked.name] > 1:
            continue
        try:
            topic = _ensure_growable(image, asked, placement)
        except KafkaError as error:
            decision.results.append(TopicResult(name=asked.name, error=error))
            continue
        new_partitions = range(len(topic.partitions), asked.partition_count)
        if len(decision.records) + len(new_partitions) > MAX_PARTITIONS_PER_REQUEST:
            decision.results.append(TopicResult(name=asked.name, error=_too_many_partitions()))
            continue
        decision.records.extend(
            _partition_record(topic.topic_id, partition, placement.node_id, directories.choose()) for partition in new_partitions
        )
        decision.results.append(TopicResult(name=asked.name, topic_id=topic.topic_id, partition_count=asked.partition_count))
    return decision


def ensure_assignment(replicas: Sequence[int], node_id: int, replication_factor: int | None = None) -> None:
    """Raise KafkaError(INVALID_REPLICA_ASSIGNMENT) where a partition cannot have its replicas on the brokers ``replicas``."""
    problem = None
    if not replicas:
        problem = "An assignment without brokers is none."
    for previous, replica in zip((None, *sorted(replicas)), sorted(replicas), strict=False):
        if replica != node_id:
            problem = f"There is no broker {replica} to assign a replica to."
            break
        if replica == previous:
            problem = f"Broker {replica} can have one replica of a partition only."
            break
    if problem is None and replication_factor is not None and len(replicas) != replication_factor:
        problem = f"An assignment of {len(replicas)} replicas, where other partitions have {replication_factor}."
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def _partitions_asked(topic: NewTopic, placement: Placement) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return placement.default_partitions if topic.partition_count == -1 else max(topic.partition_count, 0)


def _too_many_partitions() -> KafkaError:
    return KafkaError(ErrorCode.POLICY_VIOLATION, f"One request may create {MAX_PARTITIONS_PER_REQUEST} partitions at most.")


def _duplicates(times_named: Mapping[str, int]) -> list[TopicResult]:
    error = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    return [TopicResult(name=name, error=error) for name, times in times_named.items() if times > 1]


def _ensure_creatable(
    image: MetadataImage,
    topic: NewTopic,
    placement: Placement,
    validate_configs: Callable[[Mapping[str, str]], None],
) -> int:
    """The number of partitions that ``topic`` will have; raises KafkaError where it may not be created."""
    if topic.name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{topic.name} is not a topic to create.")
    if topic.name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    validate_topic_name(topic.name)
    colliding = image.colliding_topic(topic.name)
    if colliding is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Metrics could not tell topic '{topic.name}' from '{colliding}'.")
    null_configs = [name for name, value in topic.configs if value is None]
    if null_configs:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"A topic config needs a value: {', '.join(null_configs)}.")
    if topic.configs:
        validate_configs({name: value for name, value in topic.configs if value is not None})
    if topic.assignments:
        return _ensure_assigned(topic, placement.node_id)
    return _ensure_counted(topic, placement)


def _ensure_assigned(topic: NewTopic, node_id: int) -> int:
    if topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "An assignment says how many replicas there are: the replication factor must be -1.",
        )
    if topic.partition_count != -1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "An assignment says how many partitions there are: their number must be -1.")
    replication_factor = None
    seen: set[int] = set()
    for partition, replicas in topic.assignments:
        if partition in seen:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Partition {partition} is assigned more than once.",
            )
        ensure_assignment(replicas, node_id, replication_factor)
        replication_factor = len(replicas)
        seen.add(partition)
    if seen != set(range(len(seen))):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The partitions assigned must be numbered from 0 without a gap.")
    return len(seen)


def _ensure_counted(topic: NewTopic, placement: Placement) -> int:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor must be above 0, or -1 for the default.",
        )
    if topic.partition_count < -1 or topic.partition_count == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "The number of partitions must be above 0, or -1 for the default.")
    replication_factor = topic.replication_factor
    if replication_factor == -1:
        replication_factor = placement.default_replication_factor
    if replication_factor > 1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"A replication factor of {replication_factor} needs as many brokers, and there is one.",
        )
    return _partitions_asked(topic, placement)


def _ensure_growable(image: MetadataImage, asked: NewPartitions, placement: Placement) -> Topic:
    topic = image.topics.get(asked.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    current = len(topic.partitions)
    if asked.partition_count == current:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic '{asked.name}' has {current} partitions already.")
    if asked.partition_count < current:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic '{asked.name}' has {current} partitions and cannot go back to {asked.partition_count}.",
        )
    if asked.assignments is not None:
        if len(asked.assignments) != asked.partition_count - current:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{asked.partition_count - current} new partitions need as many assignments, not {len(asked.assignments)}.",
            )
        for replicas in asked.assignments:
            ensure_assignment(replicas, placement.node_id, replication_factor=1)
    return topic


def _partition_record(topic_id: UUID, partition: int, node_id: int, directory_id: UUID) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=(node_id,),
        isr=(node_id,),
        leader=node_id,
        leader_epoch=0,
        partition_epoch=0,
        directories=(directory_id,),
    )
