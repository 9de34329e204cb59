"""Decodes responses, for clients: the reader of the requested version makes the canonical message.

``responses`` is the other direction. Fields that a version lacks have their defaults. If a version has the same content in
another shape, ``_REWRITES`` turns it into the canonical one. A group, key or transactional id that the version does not repeat is
left empty.

The records of a Fetch are views of the frame, so they are not copied on their way to a log. A reference to them keeps the frame
alive.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.headers import skip_tagged_fields
from odradek.protocol.messages import messages
from odradek.protocol.readers import compile_reader
from odradek.protocol.schemas import load

if TYPE_CHECKING:
    from odradek.protocol.message_types.add_partitions_to_txn import AddPartitionsToTxnResponse, AddPartitionsToTxnTopicResult
    from odradek.protocol.message_types.find_coordinator import FindCoordinatorResponse
    from odradek.protocol.message_types.offset_fetch import OffsetFetchResponse, OffsetFetchResponseTopics

Buffer = bytes | memoryview
Decoder = Callable[[Buffer], object]

_CORRELATION_ID_BYTES: Final = 4
_WITH_RECORDS: Final = frozenset({ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT})


@cache
def response_decoder(api_key: ApiKey, version: int) -> Decoder:
    """Return ``decode(frame)``: the canonical response in a frame without its length, but with its header.

    ``decode`` raises MalformedMessage only.
    """
    layout = load(api_key, version, "response")
    rewrite = next((rewrite for last, rewrite in _REWRITES.get(api_key, ()) if version <= last), None)
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

    topics: Iterable["OffsetFetchResponseTopics"]


class _OneTransaction(Protocol):
    """AddPartitionsToTxn before version 4."""

    throttle_time_ms: int
    results_by_topic_v3_and_below: Sequence["AddPartitionsToTxnTopicResult"]


def _of_one_coordinator(older: _OneCoordinator) -> "FindCoordinatorResponse":
    from odradek.protocol.message_types.find_coordinator import Coordinator, FindCoordinatorResponse

    coordinator = Coordinator(
        node_id=older.node_id,
        host=older.host,
        port=older.port,
        error_code=older.error_code,
        error_message=getattr(older, "error_message", None),
    )
    return FindCoordinatorResponse(throttle_time_ms=getattr(older, "throttle_time_ms", 0), coordinators=(coordinator,))


def _of_one_group(older: _OneGroup) -> "OffsetFetchResponse":
    from odradek.protocol.message_types import offset_fetch as canonical

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


def _of_one_transaction(older: _OneTransaction) -> "AddPartitionsToTxnResponse":
    from odradek.protocol.message_types.add_partitions_to_txn import AddPartitionsToTxnResponse, AddPartitionsToTxnResult

    result = AddPartitionsToTxnResult(topic_results=older.results_by_topic_v3_and_below)
    return AddPartitionsToTxnResponse(throttle_time_ms=older.throttle_time_ms, results_by_transaction=(result,))


_REWRITES: dict[ApiKey, tuple[tuple[int, Callable[[Any], object]], ...]] = {
    ApiKey.FIND_COORDINATOR: ((3, _of_one_coordinator),),
    ApiKey.OFFSET_FETCH: ((7, _of_one_group),),
    ApiKey.ADD_PARTITIONS_TO_TXN: ((3, _of_one_transaction),),
}
