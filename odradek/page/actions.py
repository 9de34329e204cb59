"""The changes that the page makes, by Kafka's protocol, with the rights of its user.

Each function returns a plain result, or raises ActionFailed with one line for people.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from odradek.client.admin_apis import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
)
from odradek.client.api import ClientError, RequestRefused
from odradek.client.cluster_client import check
from odradek.client.producer import Producer, ProducerConfig
from odradek.common.config.dynamic import ResourceType
from odradek.page.facts.source import FactError, ask_nodes, described_topic, leaders_of, reason_of
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.message_types.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.message_types.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.page.facts.source import Source

_TIMEOUT_MS: Final = 10_000
# The broker's own default.
_DEFAULT: Final = -1
_SET: Final = 0
_DELETE: Final = 1
_WORDS: Final = {
    ErrorCode.NON_EMPTY_GROUP: "the group has members: stop them first",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members that commit its offsets, or this one is gone",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "its members subscribe to the topic: stop them first",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset is not within the log",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id",
}


class ActionFailed(Exception):
    """A change that was not made. ``reason`` says what happened, to what, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@contextmanager
def failing() -> Iterator[None]:
    """Raise ActionFailed in place of a client's or a fact's error."""
    try:
        yield
    except RequestRefused as error:
        known = error.message is None and error.code in _WORDS
        told = RequestRefused(error.subject, error.code, _WORDS[ErrorCode(error.code)]) if known else error
        raise ActionFailed(reason_of(told)) from error
    except ClientError as error:
        raise ActionFailed(reason_of(error)) from error
    except FactError as error:
        raise ActionFailed(error.reason) from error


async def create_topic(source: Source, name: str, partitions: int | None = None, replication_factor: int | None = None) -> None:
    """Create a topic, with the broker's defaults for what is None."""
    topic = CreatableTopic(
        name=name,
        num_partitions=_DEFAULT if partitions is None else partitions,
        replication_factor=_DEFAULT if replication_factor is None else replication_factor,
    )
    with failing():
        [answer] = (await source.cluster.ask(CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS))).topics
        check(name, answer.error_code, answer.error_message)


async def delete_topic(source: Source, name: str) -> None:
    """Delete a topic with all its records."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=_TIMEOUT_MS)
    with failing():
        [answer] = (await source.cluster.ask(DELETE_TOPICS, request)).responses
        check(name, answer.error_code, answer.error_message)


async def add_partitions(source: Source, topic: str, count: int) -> None:
    """Raise the number of partitions to ``count``. A key's later records may go to another partition."""
    asked = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    with failing():
        request = CreatePartitionsRequest(topics=[asked], timeout_ms=_TIMEOUT_MS)
        [answer] = (await source.cluster.ask(CREATE_PARTITIONS, request)).results
        check(topic, answer.error_code, answer.error_message)


async def set_config(source: Source, topic: str, name: str, value: str | None) -> None:
    """Set a topic's config; None returns it to its default."""
    change = AlterableConfig(name=name, config_operation=_DELETE if value is None else _SET, value=value)
    resource = AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configs=[change])
    with failing():
        request = IncrementalAlterConfigsRequest(resources=[resource])
        [answer] = (await source.cluster.ask(INCREMENTAL_ALTER_CONFIGS, request)).responses
        check(topic, answer.error_code, answer.error_message)


async def produce(
    source: Source,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    partition: int | None = None,
) -> tuple[int, int]:
    """Write a record. Without a partition, the key decides, as in Kafka's clients. Return its partition and its offset."""
    record = Record(timestamp=source.broker.clock.now_ms(), key=key, value=value, headers=tuple(headers))
    with failing():
        await source.cluster.refresh([topic])
        producer = Producer(source.cluster, topic, ProducerConfig(delivery_timeout_ms=_TIMEOUT_MS))
        await producer.start()
        await producer.send([(partition, record)])
        await producer.flush()
    [(index, written)] = producer.written.items()
    return index, written.first_offset


async def delete_records(source: Source, topic: str, partition: int, before: int) -> int:
    """Delete the records of a partition before an offset; -1 is the end. Return the new first offset."""
    place = f"{topic}-{partition}"
    with failing():
        leader = leaders_of([await described_topic(source, topic)]).get((topic, partition))
        if leader is None or leader < 0:
            raise RequestRefused(
                place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if leader is None else ErrorCode.LEADER_NOT_AVAILABLE
            )
        asked = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=partition, offset=before)])
        request = DeleteRecordsRequest(topics=[asked], timeout_ms=_TIMEOUT_MS)
        answers, silent = await ask_nodes(source, DELETE_RECORDS, {leader: request})
        if silent:
            raise ActionFailed(silent[leader])
        [found] = answers[leader].topics[0].partitions
        check(place, found.error_code)
    return int(found.low_watermark)
