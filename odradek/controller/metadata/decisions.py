"""The controller's decisions on topics: pure functions from the image and a request to records and answers.

Nothing here changes state: the controller appends the records of a ``Decision``, and replaying them applies it. The errors and
the order of the checks are those of Kafka's ``ReplicationControlManager``.

The records of a large operation are split into parts, which are replayed one after the other. Related records stay together: a
new topic with its configs and partitions, the configs of one resource, the quotas of one entity. Access control entries and SCRAM
credentials are separate, as Kafka's authorizer also applies them one by one.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from odradek.controller.metadata.image import TOPIC_RESOURCE, MetadataImage
from odradek.controller.metadata.placement import PlacedPartition, Placement, Placing
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC, Topic, validate_topic_name
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from odradek.protocol.metadata_records.security import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

MAX_PARTITIONS_PER_REQUEST = 10_000  # Kafka's limit
# The number of topics decided on without a pause: less than a millisecond.
_TOPICS_TOGETHER = 100

Assignments = Sequence[tuple[int, Sequence[int]]]
# Charges a topic's partitions to the quota. KafkaError: THROTTLING_QUOTA_EXCEEDED, and the topic stays as it is.
Take = Callable[[int], None]


class NewTopic(NamedTuple):
    """A requested topic. -1 is the broker's default; ``assignments`` are pairs of partition and broker ids."""

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignments: Assignments = ()
    configs: Sequence[tuple[str, str | None]] = ()


class NewPartitions(NamedTuple):
    """A topic that should grow to ``partition_count`` partitions.

    ``assignments`` has the broker ids of each new partition, None for automatic placement.
    """

    name: str
    partition_count: int
    assignments: Sequence[Sequence[int]] | None = None


class TopicResult(NamedTuple):
    """The answer for one topic. ``error`` is None on success, also if the request only validates."""

    name: str
    topic_id: UUID | None = None
    partition_count: int = -1
    error: KafkaError | None = None
    replication_factor: int = -1


class Decision(NamedTuple):
    """Records to append, and the answers to give once they are appended."""

    records: list[MetadataRecord]
    results: list[TopicResult]


def deciding_on_topics(
    image: MetadataImage,
    topics: Sequence[NewTopic],
    placement: Placement,
    validate_configs: Callable[[Mapping[str, str]], None],
    new_topic_id: Callable[[], UUID],
    take: Take | None = None,
) -> Generator[None, None, Decision]:
    """Decide on each of ``topics`` separately, in a generator that pauses.

    ``validate_configs`` raises KafkaError(INVALID_CONFIG).
    """
    asked = sum(_partitions_asked(topic, placement) for topic in topics)
    if asked > MAX_PARTITIONS_PER_REQUEST:
        return Decision([], [TopicResult(name=topic.name, error=_too_many_partitions()) for topic in topics])
    decision = Decision([], [])
    placing = placement.begin()
    times_named = Counter(topic.name for topic in topics)
    for place, topic in enumerate(topics):
        if place % _TOPICS_TOGETHER == _TOPICS_TOGETHER - 1:
            yield
        if times_named[topic.name] > 1:
            continue
        try:
            _ensure_creatable(image, topic, validate_configs)
            placed = _assigned(topic, placing) if topic.assignments else _placed(topic, placement, placing)
            if take is not None:
                take(len(placed))
        except KafkaError as error:
            decision.results.append(TopicResult(name=topic.name, error=error))
            continue
        topic_id = new_topic_id()
        decision.records.append(TopicRecord(name=topic.name, topic_id=topic_id))
        decision.records.extend(
            ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value)
            for name, value in dict(topic.configs).items()
        )
        decision.records.extend(_partition_record(topic_id, partition, each) for partition, each in enumerate(placed))
        decision.results.append(
            TopicResult(
                name=topic.name,
                topic_id=topic_id,
                partition_count=len(placed),
                replication_factor=len(placed[0].replicas),
            )
        )
    decision.results.extend(_duplicates(times_named))
    return decision


def create_partitions(
    image: MetadataImage, topics: Sequence[NewPartitions], placement: Placement, take: Take | None = None
) -> Decision:
    """Decide on more partitions for each of ``topics`` separately."""
    decision = Decision([], [])
    placing = placement.begin()
    times_named = Counter(topic.name for topic in topics)
    decision.results.extend(_duplicates(times_named))
    for asked in topics:
        if times_named[asked.name] > 1:
            continue
        try:
            topic = _ensure_growable(image, asked)
            if take is not None:
                take(asked.partition_count - len(topic.partitions))
            placed = _grown(topic, asked, placing, room=MAX_PARTITIONS_PER_REQUEST - len(decision.records))
        except KafkaError as error:
            decision.results.append(TopicResult(name=asked.name, error=error))
            continue
        decision.records.extend(
            _partition_record(topic.topic_id, partition, each) for partition, each in enumerate(placed, len(topic.partitions))
        )
        decision.results.append(TopicResult(name=asked.name, topic_id=topic.topic_id, partition_count=asked.partition_count))
    return decision


def _partitions_asked(topic: NewTopic, placement: Placement) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return placement.default_partitions if topic.partition_count == -1 else max(topic.partition_count, 0)


def _too_many_partitions() -> KafkaError:
    return KafkaError(ErrorCode.POLICY_VIOLATION, f"A request can create at most {MAX_PARTITIONS_PER_REQUEST} partitions.")


def _duplicates(times_named: Mapping[str, int]) -> list[TopicResult]:
    error = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    return [TopicResult(name=name, error=error) for name, times in times_named.items() if times > 1]


def _ensure_creatable(image: MetadataImage, topic: NewTopic, validate_configs: Callable[[Mapping[str, str]], None]) -> None:
    """Raise KafkaError if ``topic`` may not be created, wherever its partitions are placed."""
    if topic.name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Clients cannot create {topic.name}.")
    if topic.name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    validate_topic_name(topic.name)
    colliding = image.colliding_topic(topic.name)
    if colliding is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{topic.name}' has the same metric names as '{colliding}'.")
    null_configs = [name for name, value in topic.configs if value is None]
    if null_configs:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"A topic config needs a value: {', '.join(null_configs)}.")
    if topic.configs:
        validate_configs({name: value for name, value in topic.configs if value is not None})


def _assigned(topic: NewTopic, placing: Placing) -> list[PlacedPartition]:
    """Return the partitions of a topic that names their brokers."""
    if topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "With an assignment, the replication factor must be -1.",
        )
    if topic.partition_count != -1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "With an assignment, the number of partitions must be -1.")
    replication_factor = None
    seen: dict[int, PlacedPartition] = {}
    for partition, replicas in topic.assignments:
        if partition in seen:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Partition {partition} is assigned more than once.",
            )
        seen[partition] = placing.assigned(replicas, replication_factor)
        replication_factor = len(replicas)
    if set(seen) != set(range(len(seen))):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The partitions assigned must be numbered from 0 without a gap.")
    return [seen[partition] for partition in range(len(seen))]


def _placed(topic: NewTopic, placement: Placement, placing: Placing) -> Sequence[PlacedPartition]:
    """Return the partitions of a topic that the controller places."""
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
    return placing.placed(_partitions_asked(topic, placement), replication_factor)


def _grown(topic: Topic, asked: NewPartitions, placing: Placing, *, room: int) -> Sequence[PlacedPartition]:
    """Return the new partitions of a topic, at most ``room``. They have as many replicas as the existing ones."""
    replication_factor = len(topic.partitions[0].replicas)
    new_count = asked.partition_count - len(topic.partitions)
    assigned = [placing.assigned(replicas, replication_factor) for replicas in asked.assignments or ()]
    if new_count > room:
        raise _too_many_partitions()
    return placing.placed(new_count, replication_factor) if asked.assignments is None else assigned


def _ensure_growable(image: MetadataImage, asked: NewPartitions) -> Topic:
    topic = image.topics.get(asked.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    current = len(topic.partitions)
    if asked.partition_count == current:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic '{asked.name}' has {current} partitions already.")
    if asked.partition_count < current:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic '{asked.name}' has {current} partitions and cannot shrink to {asked.partition_count}.",
        )
    if asked.assignments is not None and len(asked.assignments) != asked.partition_count - current:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{asked.partition_count - current} new partitions need as many assignments, not {len(asked.assignments)}.",
        )
    return topic


def _partition_record(topic_id: UUID, partition: int, placed: PlacedPartition) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=placed.replicas,
        isr=placed.isr,
        leader=placed.isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=placed.directories,
    )


_FIRST: Final = (
    TopicRecord,
    RemoveTopicRecord,
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    UserScramCredentialRecord,
    RemoveUserScramCredentialRecord,
)


def parts(records: Sequence[MetadataRecord], least: int) -> Iterator[Sequence[MetadataRecord]]:
    """Split ``records``, in order, into parts of ``least`` or more."""
    first = 0
    for place in range(1, len(records)):
        if place - first >= least and _begins(records[place - 1], records[place]):
            yield records[first:place]
            first = place
    yield records[first:]


def _begins(previous: MetadataRecord, record: MetadataRecord) -> bool:
    """Return whether a topic, a single entry, or another resource or entity begins with ``record``."""
    if isinstance(record, _FIRST):
        return True
    if isinstance(record, ClientQuotaRecord):
        return not isinstance(previous, ClientQuotaRecord) or record.entity != previous.entity
    # The configs of a new topic follow its TopicRecord.
    return (
        isinstance(record, ConfigRecord)
        and isinstance(previous, ConfigRecord)
        and (record.resource_type, record.resource_name) != (previous.resource_type, previous.resource_name)
    )
