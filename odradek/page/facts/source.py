"""The source of all facts for one user: a client of the cluster, this broker, and its watch.

``told`` turns the client's errors into a ``FactError``. ``ask_nodes`` and ``list_offsets`` ask several brokers at the same time,
and leave out what a broker refuses, since a page shows the rest.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from odradek.client.admin_apis import DESCRIBE_CLUSTER
from odradek.client.api import Api, ClientError, LoginFailed, RequestRefused, RequestT, ResponseT
from odradek.client.apis import LIST_OFFSETS, METADATA
from odradek.client.known_cluster import list_offsets_request, listed_offsets, metadata_request
from odradek.common.acls import AclOperation
from odradek.protocol.errors import ErrorCode, error_name
from odradek.protocol.message_types.describe_cluster import DescribeClusterRequest
from odradek.testing.in_process import NotRunning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.client.cluster_client import ClusterClient
    from odradek.page.watch import Watch
    from odradek.protocol.message_types.metadata import MetadataResponse, MetadataResponseTopic
    from odradek.testing.listening import ListeningBroker

Partition = tuple[str, int]
T = TypeVar("T")
R = TypeVar("R")

_UNAUTHORIZED: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_ABSENT: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
# Rows that are made at once, in a millisecond or so.
_ROWS_AT_ONCE: Final = 30
# Partitions in one request of ListOffsets.
_AT_ONCE: Final = 2_000


class FactError(Exception):
    """A fact that cannot be shown. ``reason`` is one line for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Missing(FactError):
    """There is no such topic, partition, group or transactional id, or the user may not know of it."""


class Denied(FactError):
    """The user may not see this."""


class Unavailable(FactError):
    """The broker or its cluster does not answer at the moment. A later call may succeed."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source for one user.

    ``cluster`` is the client that is logged in as the user, with ``PAGE_CLIENT_ID`` as its client id. ``broker`` and ``watch``
    are this broker's, shared by all users. Loop thread only.
    """

    cluster: ClusterClient
    broker: ListeningBroker
    watch: Watch

    @property
    def core(self) -> BrokerCore:
        """Return this broker's process. Raises Unavailable if it does not run."""
        try:
            return self.broker.core
        except NotRunning:
            raise Unavailable("the broker is not running") from None

    def now_ms(self) -> float:
        """Return the machine's monotonic time."""
        return self.cluster.timer.clock.monotonic_ms()


class Rights(NamedTuple):
    """The user's rights on the cluster. ``has_acls``: the broker has an authorizer, so something may be hidden."""

    sees_cluster: bool
    has_acls: bool


def reason_of(error: ClientError) -> str:
    """Return a client's error as a line for people."""
    if not isinstance(error, RequestRefused):
        return " ".join(error.reason.split())
    name = error_name(error.code)
    message = " ".join((error.message or name.lower().replace("_", " ")).split()).rstrip(".")
    return f"{error.subject}: {message} ({name})"


def is_denied(code: int) -> bool:
    """Return whether an error code says that ACLs forbid it."""
    return code in _UNAUTHORIZED


async def in_turns(make: Callable[[T], R], items: Iterable[T]) -> tuple[R, ...]:
    """Return what ``make`` makes of each item. Others may use the loop after each few."""
    rows: list[R] = []
    for each in items:
        rows.append(make(each))
        if len(rows) % _ROWS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return tuple(rows)


@contextmanager
def told() -> Iterator[None]:
    """Raise a FactError in place of a client's error."""
    try:
        yield
    except RequestRefused as error:
        kind = Denied if is_denied(error.code) else Missing if error.code in _ABSENT else Unavailable
        raise kind(reason_of(error)) from error
    except ClientError as error:
        kind = Denied if isinstance(error.__cause__, LoginFailed) else Unavailable
        raise kind(reason_of(error)) from error


async def metadata(source: Source, topics: Iterable[str] | None) -> MetadataResponse:
    """Return the Metadata response for these topics, or for all that the user may see. Raises Unavailable, Denied."""
    with told():
        # The client learns the brokers' addresses.
        await source.cluster.refresh([])
        return await source.cluster.ask(METADATA, metadata_request(topics))


async def described_topic(source: Source, name: str) -> MetadataResponseTopic:
    """Return a topic as Metadata has it. Raises Missing, Denied, Unavailable."""
    [found] = (await metadata(source, [name])).topics
    if found.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        with told():
            raise RequestRefused(name, found.error_code, _about_topic(found.error_code))
    return found


def _about_topic(code: int) -> str | None:
    return "there is no such topic" if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else None


async def rights(source: Source) -> Rights:
    """Return the user's rights. Raises Unavailable, Denied."""
    has_acls = source.core.authorization is not None
    if not has_acls:
        return Rights(sees_cluster=True, has_acls=False)
    with told():
        answer = await source.cluster.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(include_cluster_authorized_operations=True))
    operations = max(answer.cluster_authorized_operations, 0)
    return Rights(sees_cluster=bool(operations >> AclOperation.DESCRIBE & 1), has_acls=True)


def hides(source: Source, user: Rights, known: MetadataResponse) -> bool:
    """Return whether ACLs hide something: the cluster's own facts, or a topic."""
    return user.has_acls and (not user.sees_cluster or len(known.topics) < len(source.core.controller.image.topics))


async def require_cluster(source: Source) -> None:
    """Raise Denied unless the user has DESCRIBE on the cluster."""
    if not (await rights(source)).sees_cluster:
        raise Denied("you need the ACL for DESCRIBE on the cluster to see this")


async def ask_nodes(
    source: Source, api: Api[RequestT, ResponseT], requests: Mapping[int, RequestT]
) -> tuple[dict[int, ResponseT], dict[int, str]]:
    """Ask several brokers, each its own request. Return the answers, and the reasons of those that do not answer."""
    found: dict[int, ResponseT] = {}
    silent: dict[int, str] = {}

    async def ask(node_id: int, request: RequestT) -> None:
        try:
            found[node_id] = await source.cluster.node(node_id).request(api, request)
        except ClientError as error:
            silent[node_id] = f"broker {node_id}: {reason_of(error)}"

    await asyncio.gather(*(ask(node_id, request) for node_id, request in requests.items()))
    return found, silent


async def list_offsets(
    source: Source, wanted: Mapping[Partition, int], leaders: Mapping[Partition, int], *, is_committed: bool = False
) -> dict[Partition, int]:
    """Return the first offset at or after each timestamp, -1 if every record is earlier. Refused partitions are absent."""
    by_leader: dict[int, list[Partition]] = {}
    for partition in wanted:
        leader = leaders.get(partition, -1)
        if leader >= 0:
            by_leader.setdefault(leader, []).append(partition)
    found: dict[Partition, int] = {}
    for start in range(0, max(map(len, by_leader.values()), default=0), _AT_ONCE):
        requests = {
            leader: list_offsets_request(
                {each: wanted[each] for each in partitions[start : start + _AT_ONCE]}, is_committed=is_committed
            )
            for leader, partitions in by_leader.items()
            if len(partitions) > start
        }
        answers, _ = await ask_nodes(source, LIST_OFFSETS, requests)
        found |= {
            partition: offset
            for answer in answers.values()
            for partition, (offset, code) in listed_offsets(answer).items()
            if not code
        }
    return found


def leaders_of(topics: Iterable[MetadataResponseTopic]) -> dict[Partition, int]:
    """Return the leader of each partition; -1 for none."""
    return {
        (str(topic.name), int(partition.partition_index)): int(partition.leader_id)
        for topic in topics
        for partition in topic.partitions
    }
