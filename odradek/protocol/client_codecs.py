"""The client's codecs: encodes requests in a version that the peer serves, and decodes responses.

``broker_codecs`` is the other direction.

Requests: the canonical message as a frame. Fields that the version lacks are omitted; a caller that needs such a field must
choose a version that has it. If a version has the same content in another shape (one coordinator key instead of a list, topic
names instead of topics), ``_REQUEST_REWRITES`` makes the object that its writer reads. Content that does not fit the shape is
refused with UNSUPPORTED_VERSION, as in Kafka's own clients.

Responses: the reader of the requested version makes the canonical message. Fields that a version lacks have their defaults. If
a version has the same content in another shape, ``_RESPONSE_REWRITES`` turns it into the canonical one. A group, key or
transactional id that the version does not repeat is left empty.

The records of a Fetch are views of the frame, so they are not copied on their way to a log. A reference to them keeps the frame
alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from struct import Struct
from struct import error as StructError  # noqa: N812  a class, whatever its name
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from uuid import UUID

from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.frames import skip_tagged_fields
from odradek.protocol.messages import load, messages
from odradek.protocol.produce_request import FIRST_BY_ID as FIRST_PRODUCE_BY_ID
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.readers import compile_reader
from odradek.protocol.writers import compile_writer

if TYPE_CHECKING:
    from odradek.protocol.message_types.add_partitions_to_txn import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
        AddPartitionsToTxnTopicResult,
    )
    from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest
    from odradek.protocol.message_types.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
    from odradek.protocol.message_types.leave_group import LeaveGroupRequest
    from odradek.protocol.message_types.list_config_resources import ListConfigResourcesRequest
    from odradek.protocol.message_types.metadata import MetadataRequest
    from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseTopics
    from odradek.protocol.message_types.update_features import UpdateFeaturesRequest

_SIZE: Final = Struct(">i").pack
_FIXED_HEADER: Final = Struct(">hhih").pack
_DOWNGRADE: Final = 2
_CLIENT_METRICS: Final = 16

Encoder = Callable[[int, str | None, object], list[Any]]
T = TypeVar("T")


@cache
def request_encoder(api_key: ApiKey, version: int) -> Encoder:
    """Return ``encode(correlation_id, client_id, request)``: the frame with its length, as chunks of any sized type.

    ``encode`` raises KafkaError: UNSUPPORTED_VERSION for content that the version cannot express, INVALID_REQUEST for a value
    that does not fit its field.
    """
    layout = load(api_key, version, "request")
    rewrite = next((rewrite for last, rewrite in _REQUEST_REWRITES.get(api_key, ()) if version <= last), None)
    write = compile_writer(layout, messages(api_key).classes["request"] if rewrite is None else {})
    flexible = layout.flexible

    def encode(correlation_id: int, client_id: str | None, request: object) -> list[Any]:
        chunks: list[Any] = [b""]
        try:
            write(chunks.append, request if rewrite is None else rewrite(request))
        except (StructError, OverflowError, TypeError) as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{api_key.name} v{version}: {error}") from error
        header = request_header(api_key, version, correlation_id, client_id, flexible=flexible)
        chunks[0] = _SIZE(len(header) + sum(map(len, chunks))) + header
        return chunks

    return encode


def request_header(api_key: int, version: int, correlation_id: int, client_id: str | None, *, flexible: bool) -> bytes:
    """Return header v1, or v2 without tagged fields for a flexible version (``frames``)."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    return _FIXED_HEADER(api_key, version, correlation_id, length) + name + (b"\0" if flexible else b"")


def _only(items: Sequence[T], api: str) -> T:
    """Return the only item, as an older version has room for just one."""
    if len(items) != 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{api}: this version takes one, not {len(items)}")
    return items[0]


def _produce_by_name(request: ProduceRequest) -> SimpleNamespace:
    if any(isinstance(topic, bytes) for topic, _ in request.topics):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "PRODUCE: this version knows topics by name, not by id")
    return _produce(request, [SimpleNamespace(name=topic, partition_data=_data(rows)) for topic, rows in request.topics])


def _produce_by_id(request: ProduceRequest) -> SimpleNamespace:
    if any(isinstance(topic, str) for topic, _ in request.topics):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "PRODUCE: this version knows topics by id, not by name")
    topics = [
        SimpleNamespace(topic_id=UUID(bytes=topic), partition_data=_data(rows))
        for topic, rows in request.topics
        if isinstance(topic, bytes)
    ]
    return _produce(request, topics)


def _produce(request: ProduceRequest, topic_data: list[SimpleNamespace]) -> SimpleNamespace:
    return SimpleNamespace(
        transactional_id=request.transactional_id, acks=request.acks, timeout_ms=request.timeout_ms, topic_data=topic_data
    )


def _data(partitions: Iterable[tuple[int, Any]]) -> list[SimpleNamespace]:
    return [SimpleNamespace(index=index, records=records) for index, records in partitions]


def _first_metadata(request: MetadataRequest) -> SimpleNamespace:
    # In version 0 an empty list means all topics, which later versions express by null; version 0 cannot ask for none.
    if request.topics is not None and not request.topics:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "METADATA: version 0 cannot ask for an empty list of topics")
    return SimpleNamespace(topics=request.topics or ())


def _one_key(request: FindCoordinatorRequest) -> SimpleNamespace:
    return SimpleNamespace(key=_only(request.coordinator_keys, "FIND_COORDINATOR"), key_type=request.key_type)


def _one_group(request: OffsetFetchRequest) -> SimpleNamespace:
    group = _only(request.groups, "OFFSET_FETCH")
    return SimpleNamespace(group_id=group.group_id, topics=group.topics, require_stable=request.require_stable)


def _first_offset_fetch(request: OffsetFetchRequest) -> SimpleNamespace:
    one = _one_group(request)
    if one.topics is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "OFFSET_FETCH: version 1 cannot ask for all topics")
    return one


def _topic_names(request: DeleteTopicsRequest) -> SimpleNamespace:
    if any(topic.name is None for topic in request.topics):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "DELETE_TOPICS: this version knows topics by name, not by id")
    return SimpleNamespace(topic_names=[topic.name for topic in request.topics], timeout_ms=request.timeout_ms)


def _one_member(request: LeaveGroupRequest) -> SimpleNamespace:
    return SimpleNamespace(group_id=request.group_id, member_id=_only(request.members, "LEAVE_GROUP").member_id)


def _one_transaction(request: AddPartitionsToTxnRequest) -> SimpleNamespace:
    transaction = _only(request.transactions, "ADD_PARTITIONS_TO_TXN")
    if transaction.verify_only:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "ADD_PARTITIONS_TO_TXN: this version cannot verify")
    return SimpleNamespace(
        v3_and_below_transactional_id=transaction.transactional_id,
        v3_and_below_producer_id=transaction.producer_id,
        v3_and_below_producer_epoch=transaction.producer_epoch,
        v3_and_below_topics=transaction.topics,
    )


def _first_update_features(request: UpdateFeaturesRequest) -> SimpleNamespace:
    if request.validate_only or any(update.upgrade_type > _DOWNGRADE for update in request.feature_updates):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "UPDATE_FEATURES: version 0 neither validates nor downgrades unsafely")
    updates = [
        SimpleNamespace(
            feature=update.feature,
            max_version_level=update.max_version_level,
            allow_downgrade=update.upgrade_type == _DOWNGRADE,
        )
        for update in request.feature_updates
    ]
    return SimpleNamespace(timeout_ms=request.timeout_ms, feature_updates=updates)


def _only_client_metrics(request: ListConfigResourcesRequest) -> ListConfigResourcesRequest:
    # Version 0 was ListClientMetricsResources.
    if tuple(request.resource_types) != (_CLIENT_METRICS,):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "LIST_CONFIG_RESOURCES: version 0 lists client metrics only")
    return request


# A rewrite applies up to its version. If that is not the last version with another shape, the next line continues.
_REQUEST_REWRITES: dict[ApiKey, tuple[tuple[int, Callable[[Any], object]], ...]] = {
    # The canonical request is the handwritten one, whose batches are not copied.
    ApiKey.PRODUCE: ((FIRST_PRODUCE_BY_ID - 1, _produce_by_name), (NEWEST_VERSION[ApiKey.PRODUCE], _produce_by_id)),
    ApiKey.METADATA: ((0, _first_metadata),),
    ApiKey.FIND_COORDINATOR: ((3, _one_key),),
    ApiKey.OFFSET_FETCH: ((1, _first_offset_fetch), (7, _one_group)),
    ApiKey.DELETE_TOPICS: ((5, _topic_names),),
    ApiKey.LEAVE_GROUP: ((2, _one_member),),
    ApiKey.ADD_PARTITIONS_TO_TXN: ((3, _one_transaction),),
    ApiKey.UPDATE_FEATURES: ((0, _first_update_features),),
    ApiKey.LIST_CONFIG_RESOURCES: ((0, _only_client_metrics),),
}


Buffer = bytes | memoryview
Decoder = Callable[[Buffer], object]

_CORRELATION_ID_BYTES: Final = 4
_WITH_RECORDS: Final = frozenset({ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT, ApiKey.SHARE_FETCH})


@cache
def response_decoder(api_key: ApiKey, version: int) -> Decoder:
    """Return ``decode(frame)``: the canonical response in a frame without its length, but with its header.

    ``decode`` raises MalformedMessage only.
    """
    layout = load(api_key, version, "response")
    rewrite = next((rewrite for last, rewrite in _RESPONSE_REWRITES.get(api_key, ()) if version <= last), None)
    views = api_key in _WITH_RECORDS
    as_buffer = memoryview if views else bytes
    canonical = messages(api_key).classes["response"]
    if rewrite is not None:
        canonical = {name: message for name, message in canonical.items() if name != layout.name}
    read = compile_reader(layout, canonical, views=views)
    # An ApiVersions response has header v0 in every version (KIP-511).
    flexible = layout.flexible and api_key != ApiKey.API_VERSIONS

    def decode(frame: Buffer) -> object:
        try:
            body = as_buffer(frame)
            position = skip_tagged_fields(body, _CORRELATION_ID_BYTES) if flexible else _CORRELATION_ID_BYTES
            response, _ = read(body, position)
        except MalformedMessage as error:
            raise MalformedMessage(f"{api_key.name} v{version}: {error.reason}") from None
        except Exception as error:  # noqa: BLE001  any exception of a decoder is the bytes' fault
            raise MalformedMessage(f"{api_key.name} v{version}: {type(error).__name__}: {error}") from None
        return response if rewrite is None else rewrite(response)

    return decode


class _OneCoordinator(Protocol):
    """FindCoordinator before version 4; version 0 has no message and no throttle time."""

    node_id: int
    host: str
    port: int
    error_code: int


class _OneGroup(Protocol):
    """OffsetFetch before version 8; version 1 has no error code of its own, versions before 3 no throttle time."""

    topics: Iterable[OffsetFetchResponseTopics]


class _OneTransaction(Protocol):
    """AddPartitionsToTxn before version 4."""

    throttle_time_ms: int
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult]


def _of_one_coordinator(older: _OneCoordinator) -> FindCoordinatorResponse:
    from odradek.protocol.message_types.find_coordinator import Coordinator, FindCoordinatorResponse  # 0.6 ms

    coordinator = Coordinator(
        node_id=older.node_id,
        host=older.host,
        port=older.port,
        error_code=older.error_code,
        error_message=getattr(older, "error_message", None),
    )
    return FindCoordinatorResponse(throttle_time_ms=getattr(older, "throttle_time_ms", 0), coordinators=(coordinator,))


def _of_one_group(older: _OneGroup) -> OffsetFetchResponse:
    from odradek.protocol.message_types import offset_fetch as canonical  # 1.1 ms

    topics = tuple(
        canonical.OffsetFetchResponseTopics(
            name=topic.name,
            partitions=tuple(
                canonical.OffsetFetchResponsePartitions(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=getattr(partition, "committed_leader_epoch", -1),
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ),
        )
        for topic in older.topics
    )
    group = canonical.OffsetFetchResponseGroup(topics=topics, error_code=getattr(older, "error_code", 0))
    return canonical.OffsetFetchResponse(throttle_time_ms=getattr(older, "throttle_time_ms", 0), groups=(group,))


def _of_one_transaction(older: _OneTransaction) -> AddPartitionsToTxnResponse:
    from odradek.protocol.message_types.add_partitions_to_txn import AddPartitionsToTxnResponse, AddPartitionsToTxnResult

    result = AddPartitionsToTxnResult(topic_results=older.results_by_topic_v3_and_below)
    return AddPartitionsToTxnResponse(throttle_time_ms=older.throttle_time_ms, results_by_transaction=(result,))


_RESPONSE_REWRITES: dict[ApiKey, tuple[tuple[int, Callable[[Any], object]], ...]] = {
    ApiKey.FIND_COORDINATOR: ((3, _of_one_coordinator),),
    ApiKey.OFFSET_FETCH: ((7, _of_one_group),),
    ApiKey.ADD_PARTITIONS_TO_TXN: ((3, _of_one_transaction),),
}
