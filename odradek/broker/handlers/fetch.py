"""Fetch 4-18: whole batches as they lie in the log, at once or when there is enough.

min bytes and max wait through the Fetch purgatory, max bytes with the first-batch rule (KIP-74), fetch sessions (KIP-227, version 7),
leader epochs (KIP-320, version 9) and diverging epochs (KIP-595, version 12), topic ids (KIP-516, version 13). The isolation level bounds
what is read by the high watermark or the last stable offset.

Left out: followers (a replica id is not looked at: there is one replica), preferred read replicas (always -1), tiered storage.
"""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.broker.context import Reply, RequestContext
from odradek.broker.delayed_fetch import DelayedFetch, FetchRead
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.fetch_sessions import FetchContext
    from odradek.broker.partitions import Partition
    from odradek.broker.server import Broker

_m = messages(ApiKey.FETCH)
_Response = _m.FetchResponse
_Topic = _m.FetchableTopicResponse
_READ_COMMITTED = 1


def handle(broker: "Broker", context: RequestContext, request: Any) -> Any:
    """What there is where that is enough, else a ``Reply``. Session errors are answered for the request, all else per partition."""
    by_id = context.version >= 13
    session = broker.fetch_sessions.open(request, by_id, broker.clock.now_ms())
    if session.error_code:
        return _Response(error_code=session.error_code, session_id=session.session_id)
    wanted = [(key, asked, _find(broker, key[0], key[1])) for key, asked in session.partitions.items()]
    read = FetchRead(
        wanted,
        min_bytes=request.min_bytes,
        max_bytes=min(request.max_bytes, broker.config["fetch.max.bytes"]),
        committed_only=request.isolation_level == _READ_COMMITTED,
    )
    results, total, must_answer = read.read()
    if must_answer or total >= request.min_bytes or request.max_wait_ms <= 0 or not wanted:
        return _respond(session, results, by_id)
    reply = Reply()
    operation = DelayedFetch(
        broker.clock.monotonic_ms() + request.max_wait_ms,
        read,
        lambda: reply.complete(_respond(session, read.read()[0], by_id)),
    )
    broker.fetch_purgatory.try_complete_else_watch(operation, read.partitions())
    return reply


def _find(broker: "Broker", topic: UUID | str, index: int) -> "Partition | KafkaError":
    if isinstance(topic, str):
        partitions = broker.partitions.of_topic(topic)
    else:
        partitions = broker.partitions.topic_for_id(topic)
        if not partitions:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if 0 <= index < len(partitions):
        return partitions[index]
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _respond(session: "FetchContext", results: list[tuple[tuple[Any, int], Any]], by_id: bool) -> Any:
    """The response: what the session lets through, partitions of a topic together."""
    topics: list[Any] = []
    last_key: Any = None
    partitions: list[Any] = []
    for (topic, _), data in session.select(results):
        if topic != last_key:
            last_key = topic
            partitions = []
            topics.append(
                _Topic(topic_id=topic, partitions=partitions) if by_id else _Topic(topic=topic, partitions=partitions)
            )
        partitions.append(data)
    return _Response(session_id=session.session_id, responses=topics)
