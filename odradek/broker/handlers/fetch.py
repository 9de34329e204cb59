"""Fetch 4-18: whole batches as they lie in the log, at once or when there is enough.

Min bytes and max wait through the Fetch purgatory, max bytes with the first-batch rule (KIP-74), fetch sessions (KIP-227, from
version 7 on), leader epochs (KIP-320, version 9) and diverging epochs (KIP-595, version 12), topic ids (KIP-516, version 13). The
isolation level bounds what is read by the high watermark or the last stable offset.

Left out: followers (a replica id is not looked at: there is one replica), preferred read replicas (always -1), tiered storage.
"""

from typing import TYPE_CHECKING, Any, Final

from odradek.broker.context import Reply, RequestContext
from odradek.broker.logging import log
from odradek.broker.replica.delayed_fetch import DelayedFetch, FetchRead
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.replica.fetch_sessions import FetchContext, FetchPartition
    from odradek.broker.server import Broker

_m: Final = messages(ApiKey.FETCH)
_Response: Final = _m.FetchResponse
_Topic: Final = _m.FetchableTopicResponse
_READ_COMMITTED: Final = 1


def handle(broker: "Broker", context: RequestContext, request: Any) -> Any:
    """What there is where that is enough, else a ``Reply``. Session errors are the request's, all others a partition's."""
    by_id = context.version >= 13
    session = broker.fetch_sessions.open(request, by_id, broker.clock.monotonic_ms())
    if session.error_code:
        return _Response(error_code=session.error_code, session_id=session.session_id)
    max_bytes = min(request.max_bytes, broker.config["fetch.max.bytes"])
    read = FetchRead(
        session.partitions,
        broker.partitions.find_fetched,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        committed_only=request.isolation_level == _READ_COMMITTED,
    )
    results, enough = read.read()
    if enough or request.max_wait_ms <= 0 or not session.partitions:
        return _respond(session, results, by_id)
    reply: Reply[Any] = Reply()
    operation = DelayedFetch(
        broker.clock.monotonic_ms() + request.max_wait_ms,
        read,
        lambda: reply.complete(_answer_now(session, read, by_id)),
    )
    broker.fetch_purgatory.try_complete_else_watch(operation, read.partitions())
    return reply


def _answer_now(session: "FetchContext", read: FetchRead, by_id: bool) -> Any:
    """What a fetch that waited finds. It is asked from within an append, or by the timer: an error has to be an answer."""
    try:
        return _respond(session, read.read()[0], by_id)
    except Exception as error:  # noqa: BLE001  told to the client as such, and to the log in full
        log.error("a fetch that waited could not be answered", error)
        return _Response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)


def _respond(session: "FetchContext", results: list[tuple["FetchPartition", Any]], by_id: bool) -> Any:
    """The response: what the session lets through, partitions of a topic together where they follow one another."""
    topics: list[Any] = []
    last_key: Any = _Topic
    partitions: list[Any] = []
    for asked, data in session.select(results):
        key = asked.topic_key
        if key != last_key:
            last_key = key
            partitions = []
            topics.append(_Topic(topic_id=key, partitions=partitions) if by_id else _Topic(topic=key, partitions=partitions))
        partitions.append(data)
        if data.records:
            asked.target.fetched_bytes += len(data.records)
    return _Response(error_code=session.error_code, session_id=session.session_id, responses=topics)
