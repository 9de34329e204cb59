"""Topics of a test, made at a broker's start or when they are first used; and their records, written and read in its process.

A row is a value, or a tuple of key and value, or of key, value and a dict of headers. Bytes are written as they are, text as
UTF-8, None as null, and everything else as JSON. A row with a key goes to the partition that Kafka's own clients choose for
it. Rows without keys go to the partitions in turn.

The partition of a key is its murmur2 hash, without the sign, modulo the number of partitions. Source: ``Utils.murmur2`` and
``BuiltInPartitioner.partitionForKey`` of Apache Kafka.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from odradek.common.config.dynamic import ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.fetched_batches import fetched_batches
from odradek.protocol.hashing import partition_for_key
from odradek.protocol.message_types.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.message_types.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.message_types.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.records import Record, build_batch, read_records
from odradek.testing.misuse import checked_choice, checked_count, checked_name, checked_rows, config_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.protocol.message_types.create_topics import CreateTopicsResponse
    from odradek.protocol.message_types.fetch import PartitionData
    from odradek.testing.in_process import InProcessBroker

__tracebackhide__ = True

_CREATE_TOPICS_VERSION = 7
_DESCRIBE_CONFIGS_VERSION = 4
_DEFAULT = -1


class NewTopic(NamedTuple):
    """A topic to be made. Without ``partitions`` it has ``num.partitions`` of them."""

    partitions: int | None = None
    configs: Mapping[str, object] = {}


def checked_topics(topics: object) -> dict[str, int | NewTopic | None]:
    """Return the ``topics`` of a broker. Raises TypeError."""
    if topics is None:
        return {}
    if not isinstance(topics, Mapping):
        names = list(topics) if isinstance(topics, list | tuple | set) else [topics]
        instead = {str(name): 1 for name in names}
        raise TypeError(f"topics must be a dict of names and numbers of partitions: topics={instead!r}, not {topics!r}")
    return {checked_name("topic", name): _checked(name, new) for name, new in topics.items()}


def _checked(name: str, new: object) -> int | NewTopic | None:
    """Return a topic's number of partitions or its ``NewTopic``. Raises TypeError."""
    partitions = new.partitions if isinstance(new, NewTopic) else new
    if partitions is not None and (isinstance(partitions, bool) or not isinstance(partitions, int)):
        raise TypeError(f"topic {name!r} needs a number of partitions, None or NewTopic(partitions, configs), not {partitions!r}")
    if isinstance(new, NewTopic):
        config_texts(new.configs)
        return new
    return partitions


class TopicMaker(Protocol):
    """A running broker that answers its own requests: ``InProcessBroker``, or that of ``odradek serve``."""

    @property
    def core(self) -> BrokerCore:
        """The running process."""

    async def ask(self, api_key: ApiKey, request: Any, version: int) -> Any:
        """Return the answer to a request."""


async def create_topics(broker: TopicMaker, topics: Mapping[str, int | NewTopic | None], *, takes_others: bool = False) -> None:
    """Make the missing topics, each with a number of partitions or as its ``NewTopic`` says.

    Topics that exist stay as they are. Raises KafkaError: TOPIC_ALREADY_EXISTS if one of them differs from the request, unless
    the caller ``takes_others``; otherwise the error of the first topic that is refused.
    """
    known = broker.core.controller.image.topics
    checked = checked_topics(topics)
    asked = [_asked(name, topic) for name, topic in checked.items() if name not in known]
    for name in () if takes_others else checked.keys() & known.keys():
        await _ensure_same(broker, _asked(name, checked[name]))
    if not asked:
        return
    response: CreateTopicsResponse = await broker.ask(
        ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=asked), _CREATE_TOPICS_VERSION
    )
    for topic in response.topics:
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(ErrorCode(topic.error_code), f"topic {topic.name!r}: {topic.error_message}")


async def _ensure_same(broker: TopicMaker, asked: CreatableTopic) -> None:
    """Raise KafkaError unless the topic has the partitions and configs asked for. Unset ones are not compared."""
    count = len(broker.core.controller.image.topics[asked.name].partitions)
    if asked.num_partitions not in (_DEFAULT, count):
        raise KafkaError(
            ErrorCode.TOPIC_ALREADY_EXISTS,
            f"topic {asked.name!r} already exists: it has {count} partitions, not {asked.num_partitions}",
        )
    wanted = {config.name: config.value for config in asked.configs}
    if not wanted:
        return
    resource = DescribeConfigsResource(ResourceType.TOPIC, asked.name, tuple(wanted))
    request = DescribeConfigsRequest(resources=[resource])
    (described,) = (await broker.ask(ApiKey.DESCRIBE_CONFIGS, request, _DESCRIBE_CONFIGS_VERSION)).results
    found = {config.name: config.value for config in described.configs}
    for name, value in wanted.items():
        if found.get(name) != value:
            raise KafkaError(
                ErrorCode.TOPIC_ALREADY_EXISTS,
                f"topic {asked.name!r} already exists: its {name} is {found.get(name)}, not {value}",
            )


def _asked(name: str, topic: int | NewTopic | None) -> CreatableTopic:
    new = topic if isinstance(topic, NewTopic) else NewTopic(topic)
    return CreatableTopic(
        name=name,
        num_partitions=_DEFAULT if new.partitions is None else new.partitions,
        replication_factor=_DEFAULT,
        configs=[CreatableTopicConfig(config, text) for config, text in config_texts(new.configs).items()],
    )


Isolation = Literal["read_uncommitted", "read_committed"]
ISOLATION_LEVELS: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")

# The last versions that name topics.
_PRODUCE_VERSION = 12
_FETCH_VERSION = 12
_ALL_REPLICAS = -1
_TIMEOUT_MS = 30_000
_FETCH_BYTES = 16 * 1024 * 1024
_FEWEST_FIELDS = 2
_MOST_FIELDS = 3
# Far below max.message.bytes, even with large headers.
_BATCH_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record in a partition; ``timestamp`` is in ms since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def text(self) -> str | None:
        """Return the value as UTF-8."""
        return None if self.value is None else self.value.decode()

    @property
    def json(self) -> Any:
        """Return the value parsed as JSON."""
        return None if self.value is None else json.loads(self.value)


async def produce(broker: InProcessBroker, topic: str, rows: Iterable[object], partition: int | None) -> list[StoredRecord]:
    """Write rows, and return their records in the same order. Raises KafkaError."""
    rows = checked_rows(rows)
    checked_name("topic", topic)
    if broker.core.config["auto.create.topics.enable"]:
        await create_topics(broker, {topic: None})
    partition_count = len(require_topic(broker, topic))
    if partition is not None and checked_count("partition", partition) >= partition_count:
        raise ValueError(f"topic {topic!r} has no partition {partition}: it has {partition_count}, numbered from 0")
    now_ms = broker.core.clock.now_ms()
    turns = count()
    records: list[tuple[int, Record]] = []
    for row in rows:
        record = record_of_row(row, now_ms)
        index = partition
        if index is None:
            index = next(turns) % partition_count if record.key is None else partition_for_key(record.key, partition_count)
        records.append((index, record))
    by_partition: dict[int, list[Record]] = {}
    for index, record in records:
        by_partition.setdefault(index, []).append(record)
    offsets = {index: await append_records(broker, topic, index, those) for index, those in by_partition.items()}
    return [_stored(topic, index, record._replace(offset=next(offsets[index]))) for index, record in records]


async def read(broker: InProcessBroker, topic: str, isolation_level: Isolation) -> list[StoredRecord]:
    """Return all records of a topic, partition by partition. The KafkaError for an unknown topic lists the known ones."""
    checked_choice("isolation_level", isolation_level, ISOLATION_LEVELS)
    found: list[StoredRecord] = []
    for index, offset in require_topic(broker, topic).items():
        fetched = await _fetch(broker, topic, index, offset, isolation_level)
        while data := _bytes_of(fetched):
            for position, header, is_visible in fetched_batches(data, fetched.aborted_transactions):
                if is_visible:
                    found += [_stored(topic, index, record) for record in read_records(data, position) if record.offset >= offset]
                offset = header.next_offset  # noqa: PLW2901  the records before it are read
            fetched = await _fetch(broker, topic, index, offset, isolation_level)
    return found


def require_topic(broker: InProcessBroker, topic: str) -> dict[int, int]:
    """Return the start offset of each partition. Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, with the known topics."""
    partitions = broker.core.partitions.of_topic(topic)
    if not partitions:
        names = ", ".join(sorted(broker.core.controller.image.topics)) or "none"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}; topics: {names}")
    return {index: partitions[index].require_log().log_start_offset for index in sorted(partitions)}


async def append_records(broker: TopicMaker, topic: str, index: int, records: list[Record]) -> Iterator[int]:
    """Append ``records`` and return their offsets. Raises KafkaError."""
    offsets: list[int] = []
    for part in _parts(records):
        request = ProduceRequest(acks=_ALL_REPLICAS, timeout_ms=_TIMEOUT_MS, topics=[(topic, [(index, build_batch(part))])])
        response = await broker.ask(ApiKey.PRODUCE, request, _PRODUCE_VERSION)
        result = response.responses[0].partition_responses[0]
        if result.error_code:
            raise KafkaError(ErrorCode(result.error_code), f"{topic}-{index}: {result.error_message or 'refused'}")
        offsets += range(result.base_offset, result.base_offset + len(part))
    return iter(offsets)


def _stored(topic: str, index: int, record: Record) -> StoredRecord:
    return StoredRecord(topic, index, *record)


def _parts(records: list[Record]) -> Iterator[list[Record]]:
    part: list[Record] = []
    size = 0
    for record in records:
        if part and size > _BATCH_BYTES:
            yield part
            part, size = [], 0
        part.append(record)
        size += len(record.key or b"") + len(record.value or b"")
    if part:
        yield part


def record_of_row(row: object, timestamp: int) -> Record:
    """Return the record of a row. Raises ValueError, TypeError."""
    fields = row if isinstance(row, tuple) else (None, row)
    if not _FEWEST_FIELDS <= len(fields) <= _MOST_FIELDS:
        raise ValueError(f"a row must be a value, (key, value) or (key, value, headers), not {row!r}")
    headers: object = fields[2] if len(fields) == _MOST_FIELDS else {}
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers must be a dict of names and values, not {headers!r}, in the row {row!r}")
    try:
        pairs = tuple((checked_name("header", name), _encoded(content)) for name, content in headers.items())
        return Record(timestamp=timestamp, key=_encoded(fields[0]), value=_encoded(fields[1]), headers=pairs)
    except (TypeError, ValueError) as error:
        # JSON lacks the type, or the text is not valid in UTF-8.
        raise ValueError(f"the row {row!r} cannot be written: {error}") from None


def _encoded(content: object) -> bytes | None:
    match content:
        case None:
            return None
        case bytes() | bytearray() | memoryview():
            return bytes(content)
        case str():
            return content.encode()
        case _:
            return json.dumps(content).encode()


async def _fetch(broker: InProcessBroker, topic: str, index: int, offset: int, isolation_level: Isolation) -> PartitionData:
    asked = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
    request = FetchRequest(
        max_bytes=_FETCH_BYTES,
        isolation_level=int(isolation_level == "read_committed"),
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
    response = await broker.ask(ApiKey.FETCH, request, _FETCH_VERSION)
    fetched: PartitionData = response.responses[0].partitions[0]
    if fetched.error_code:
        raise KafkaError(ErrorCode(fetched.error_code), f"{topic}-{index} at offset {offset}")
    return fetched


def _bytes_of(fetched: PartitionData) -> bytes:
    records: Any = fetched.records or b""
    return records if isinstance(records, bytes) else bytes(records.read())
