"""Fetch 4-18: returns whole batches as stored in the log, at once or when there is enough.

Min bytes and max wait use the Fetch purgatory. Max bytes follows the first-batch rule (KIP-74). Fetch sessions (KIP-227) since
version 7, leader epochs (KIP-320) since 9, diverging epochs (KIP-595) since 12, topic ids (KIP-516) since 13. Since version 16 a
wrong-leader error names the right leader (KIP-951). The isolation level decides whether reads end at the high watermark or at the
last stable offset.

A follower reads up to the log's end. From version 15 on it sends its broker epoch as well (KIP-903).

From version 11 on a consumer may read from any replica, up to the high watermark known there. A leader with
``replica.selector.class`` sends it to a replica in its rack (KIP-392).

A consumer over its quota gets an answer without partitions; its session does not change (``quotas.throttle_gate``).

Left out: tiered storage.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.replica.delayed_fetch import DelayedFetch, FetchRead, ReplicaSelector
from odradek.broker.replica.fetch_sessions import ReadableSessions
from odradek.common.acls import AclOperation, AclResourceType
from odradek.common.config.table_quorum import RACK_AWARE_SELECTOR
from odradek.common.context import Reply, RequestContext
from odradek.common.logging import log
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from odradek.broker.api.services import FetchServices
    from odradek.broker.replica.fetch_partitions import FetchPartition, FetchPartitions, TopicKey
    from odradek.broker.replica.fetch_sessions import FetchContext, FetchSessions, Results
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.controller.metadata.topic import Topic

_Response: Final = FetchResponse
_Topic: Final = FetchableTopicResponse
# Creates a named tuple without its constructor, in a third of the time. All fields must be given, in order.
_new: Final = tuple.__new__
_READ_COMMITTED: Final = 1
_FROM_ANY_REPLICA: Final = 11
_REPLICA_STATE: Final = 15
_TELLS_LEADER: Final = 16
# The most partitions that are read at once, in the turn of the loop in which the request came.
_READ_AT_ONCE: Final = 64
_SLICE_MS: Final = 5


def handle(
    services: "FetchServices", context: RequestContext, request: FetchRequest, sessions: "FetchSessions | None" = None
) -> "FetchResponse | Reply[FetchResponse]":
    """Return the response if there is enough, else a ``Reply``. A session error fails the request, others a partition."""
    by_id = context.version >= 13
    session = (services.fetch_sessions if sessions is None else sessions).open(request, by_id, services.clock.monotonic_ms())
    if session.error_code:
        return _Response(error_code=session.error_code, session_id=session.session_id)
    max_bytes = min(request.max_bytes, services.config["fetch.max.bytes"])
    if request.replica_state.replica_id >= 0 or request.replica_id >= 0:
        read = _follower_read(services, context, request, session, max_bytes)
    else:
        throttle = None
        if services.quotas.managers is not None:
            throttle, max_bytes = _throttle(services, context, session, max_bytes)
        any_replica = context.version >= _FROM_ANY_REPLICA
        read = FetchRead(
            session.partitions,
            services.partitions.find_fetched,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            committed_only=request.isolation_level == _READ_COMMITTED,
            is_whole=session.is_whole,
            told_by=services.node_id if context.version >= _TELLS_LEADER else None,
            any_replica=any_replica,
            selector=_selector(services, context, request) if any_replica and request.rack_id else None,
            throttle=throttle,
        )
    if read.size > _READ_AT_ONCE:
        return _answer_in_slices(services, request, session, read, by_id)
    results, enough = read.read()
    if enough or request.max_wait_ms <= 0 or not session.partitions:
        return _respond(session, read, results, by_id)
    reply: Reply[FetchResponse] = Reply()
    _wait(services, request, session, read, by_id, reply)
    return reply


def _throttle(
    services: "FetchServices", context: RequestContext, session: "FetchContext", max_bytes: int
) -> "tuple[Callable[[Results], int] | None, int]":
    """Return the function that decides how long to throttle the found results, and the number of bytes to read at most."""
    from odradek.broker.quotas.client_quota_manager import fetch_response_bytes  # 1.0 ms

    quota = services.quotas.fetch_quota(context)
    if quota is None:
        return None, max_bytes
    return lambda results: quota.throttle_ms(fetch_response_bytes(context.version, session.told(results))), quota.most_bytes(
        max_bytes
    )


def _selector(services: "FetchServices", context: RequestContext, request: FetchRequest) -> ReplicaSelector | None:
    if services.config["replica.selector.class"] != RACK_AWARE_SELECTOR:
        return None
    return ReplicaSelector(request.rack_id, services.cluster.nodes(context.listener_name), services.node_id)


def _follower_read(
    services: "FetchServices", context: RequestContext, request: FetchRequest, session: "FetchContext", max_bytes: int
) -> FetchRead:
    from odradek.broker.replica.follower_fetch import FollowerFetchRead  # 0.9 ms

    state = request.replica_state if context.version >= _REPLICA_STATE else ReplicaState(request.replica_id)
    return FollowerFetchRead(
        session.partitions,
        services.partitions.find_fetched,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        node_id=state.replica_id,
        broker_epoch=state.replica_epoch,
        now_ms=services.clock.monotonic_ms(),
        is_whole=session.is_whole,
        told_by=services.node_id if context.version >= _TELLS_LEADER else None,
    )


def _answer_in_slices(
    services: "FetchServices", request: FetchRequest, session: "FetchContext", read: FetchRead, by_id: bool
) -> Reply[FetchResponse]:
    """Answer a fetch of many partitions, reading in slices."""
    reply: Reply[FetchResponse] = Reply()

    def finish(results: "Results", enough: bool) -> None:
        if enough or request.max_wait_ms <= 0:
            reply.complete(_respond(session, read, results, by_id))
        else:
            _wait(services, request, session, read, by_id, reply)

    _read_in_slices(services, read, reply, finish)
    return reply


def _wait(
    services: "FetchServices",
    request: FetchRequest,
    session: "FetchContext",
    read: FetchRead,
    by_id: bool,
    reply: Reply[FetchResponse],
) -> None:
    """Complete ``reply`` when there is enough, or when the wait time is over."""

    def respond() -> None:
        session.partitions.unwatch()
        found = read.take_found()
        if found is None and read.size > _READ_AT_ONCE:
            _read_in_slices(services, read, reply, lambda results, _: reply.complete(_respond(session, read, results, by_id)))
        else:
            reply.complete(_answer_now(session, read, found, by_id))

    operation = DelayedFetch(services.clock.monotonic_ms() + request.max_wait_ms, read, respond)
    session.partitions.watch()
    services.fetch_purgatory.try_complete_else_watch(operation, [session.partitions.key])


def _read_in_slices(
    services: "FetchServices", read: FetchRead, reply: Reply[FetchResponse], then: "Callable[[Results, bool], None]"
) -> None:
    """Read for some milliseconds in each turn of the loop. Call ``then`` with the results, and whether they are enough."""
    _SlicedRead(services, read, reply, then).go_on()


class _SlicedRead:
    """A read in slices. A class, since a recursive closure would keep all results, files too, until garbage collection."""

    __slots__ = ("_begun", "_read", "_reply", "_services", "_then")

    def __init__(
        self, services: "FetchServices", read: FetchRead, reply: Reply[FetchResponse], then: "Callable[[Results, bool], None]"
    ) -> None:
        self._services = services
        self._read = read
        self._begun = read.begin()
        self._reply = reply
        self._then = then

    def go_on(self) -> None:
        """Continue reading, in this turn of the loop."""
        clock = self._services.clock
        until_ms = clock.monotonic_ms() + _SLICE_MS
        try:
            results, enough = self._read.read(self._begun)
            while not self._begun.is_over:
                if clock.monotonic_ms() >= until_ms:
                    self._services.call_soon(self.go_on)
                    return
                results, enough = self._read.read(self._begun)
            self._then(results, enough)
        except Exception as error:  # noqa: BLE001  answered as an error, and logged in full
            log.error("cannot answer a fetch of many partitions", error)
            if not self._reply.done:
                self._reply.complete(_Response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))


def _answer_now(session: "FetchContext", read: FetchRead, found: "Results | None", by_id: bool) -> FetchResponse:
    """Answer a fetch that waited. The caller is an append or the timer, so an error must become an answer."""
    try:
        return _respond(session, read, read.read()[0] if found is None else found, by_id)
    except Exception as error:  # noqa: BLE001  answered as an error, and logged in full
        log.error("cannot answer a delayed fetch", error)
        return _Response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)


def _respond(session: "FetchContext", read: FetchRead, results: "Results", by_id: bool) -> FetchResponse:
    """Return the response with the session's selection. Consecutive partitions of a topic are grouped."""
    if read.throttle is not None:
        throttle_ms = read.throttle(results)
        if throttle_ms:
            session.throttle()
            return _Response(throttle_time_ms=throttle_ms, error_code=session.error_code, session_id=session.session_id)
    topics: list[FetchableTopicResponse] = []
    last_key: TopicKey = None
    partitions: list[PartitionData] = []
    for asked, data in session.select(results):
        key = asked.topic_key
        if key != last_key or not topics:
            last_key = key
            partitions = []
            topics.append(_new(_Topic, (key, partitions, "") if by_id else (None, partitions, key)))
        partitions.append(data)
        if data.records:
            read.note_sent(asked.target, len(data.records))
    return _new(_Response, (0, session.error_code, session.session_id, topics, ()))


def rule(guarded: "GuardedRequest") -> object:
    """Require READ on each topic; from a follower, CLUSTER_ACTION on the cluster.

    A session keeps partitions that its client may not read, and reports their errors in each response.
    """
    sessions = ReadableSessions(guarded.services.fetch_sessions, partial(_refused, guarded), _refusal)
    return handle(guarded.services, guarded.context, guarded.request, sessions)


def _refused(guarded: "GuardedRequest", request: FetchRequest, partitions: "FetchPartitions") -> "list[FetchPartition]":
    """Return the partitions of a session that the client may not read."""
    access = guarded.access
    if request.replica_state.replica_id >= 0 or request.replica_id >= 0:
        return [] if access.allows_cluster(AclOperation.CLUSTER_ACTION) else list(partitions)
    names = {}
    for key in partitions.topic_keys:
        name = _name_of(guarded, key, partitions.of_topic(key))
        if name is not None:
            names[key] = name
    allowed = access.allowed(AclOperation.READ, AclResourceType.TOPIC, list(names.values()))
    return [each for key, name in names.items() if name not in allowed for each in partitions.of_topic(key)]


def _name_of(guarded: "GuardedRequest", key: "TopicKey", of_topic: "Iterable[FetchPartition]") -> str | None:
    """Return the topic's name, also of a deleted topic if this session has known its id."""
    if isinstance(key, str):
        return key
    known: Mapping[UUID, Topic] = guarded.services.controller.image.topics_by_id
    topic = None if key is None else known.get(key)
    if topic is None:
        return next((each.topic_name for each in of_topic if each.topic_name is not None), None)
    for each in of_topic:
        if each.topic_name is not None:
            break
        each.topic_name = topic.name
    return topic.name


def _refusal(partition: "FetchPartition") -> PartitionData:
    return PartitionData(
        partition_index=partition.partition,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )
