"""A client of a cluster on the caller's event loop: its nodes, the leaders of its partitions, and its coordinators.

``ask`` sends a request to any node that answers. ``leaders``, ``list_offsets`` and ``coordinator`` choose the node by the last
Metadata response. A caller that is told NOT_LEADER_OR_FOLLOWER calls ``refresh`` and tries again: ``TRANSIENT`` has the error
codes that pass by themselves.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

from odradek.client.api import (
    Api,
    ClientError,
    ConnectFailed,
    Disconnected,
    LoginFailed,
    RequestRefused,
    RequestT,
    RequestTimedOut,
    ResponseT,
)
from odradek.client.apis import FIND_COORDINATOR, LATEST_TIMESTAMP, LIST_OFFSETS, METADATA
from odradek.client.known_cluster import (
    Address,
    KnownCluster,
    Partition,
    list_offsets_request,
    listed_offsets,
    metadata_request,
    name_of,
)
from odradek.client.node_client import ClientConfig, NodeClient, connect_to
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.find_coordinator import FindCoordinatorRequest
from odradek.timing.driver import AsyncioDriver
from odradek.timing.system_clock import SystemClock
from odradek.timing.timer import Timer

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from odradek.client.login import Login

T = TypeVar("T")

RETRY_BACKOFF_MS: Final = 100
# The time to wait out transient errors.
PATIENCE_MS: Final = 30_000

TRANSIENT: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)


def check(subject: str, code: int, message: str | None = None) -> None:
    """Raise RequestRefused unless ``code`` is NONE."""
    if code:
        raise RequestRefused(subject, code, message)


def is_transient(error: ClientError) -> bool:
    """Return whether the same request may succeed a moment later, perhaps at another node."""
    if isinstance(error, RequestRefused):
        return error.code in TRANSIENT
    return isinstance(error, ConnectFailed | Disconnected | RequestTimedOut)


class NoAnswer(ConnectFailed):
    """No node answers. ``is_cut_off``: all accept connections, and close them: they may want TLS or a login.

    If a node has refused the login, that is the cause.
    """

    def __init__(self, reason: str, *, is_cut_off: bool) -> None:
        super().__init__(reason)
        self.is_cut_off = is_cut_off


def _is_cut_off(failure: ClientError) -> bool:
    """Return whether a connection was made and then closed. A failed attempt has the error of the system as its cause."""
    return isinstance(failure, Disconnected) or isinstance(failure.__cause__, ClientError)


class ClusterClient:
    """The nodes of a cluster. ``open_cluster`` makes one. Loop thread only."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        timer: Timer,
        random: Random,
        config: ClientConfig | None = None,
        tls: "ssl.SSLContext | None" = None,
        login: "Login | None" = None,
        dialled: Mapping[Address, Address] | None = None,
    ) -> None:
        self.timer = timer
        self.random = random
        self._config = config or ClientConfig()
        self._tls = None if tls is None else lambda: tls
        self._login = None if login is None else lambda: login
        self._dialled = dialled or {}
        self._bootstrap = list(bootstrap)
        self._known = KnownCluster()
        self._nodes: dict[tuple[Address, str], NodeClient] = {}
        self.leaders = self._known.leaders
        self.by_leader = self._known.by_leader

    def close(self) -> None:
        """Close all connections."""
        for node in self._nodes.values():
            node.close()

    async def sleep(self, duration_ms: float) -> None:
        """Wait on the timer's clock."""
        awake = asyncio.Event()
        self.timer.call_after(duration_ms, awake.set)
        await awake.wait()

    def node(self, node_id: int, purpose: str = "") -> NodeClient:
        """Return the client of a node. Each ``purpose`` has its own connection. Raises ConnectFailed for an unknown node."""
        return self._client(self._known.node(node_id)[1:], purpose)

    async def ask(self, api: Api[RequestT, ResponseT], request: RequestT) -> ResponseT:
        """Return the response of the first node that answers: one of the cluster, or else a bootstrap address."""
        failures: dict[str, ClientError] = {}
        for address in dict.fromkeys([*(node[1:] for node in self._known.nodes.values()), *self._bootstrap]):
            try:
                return await self._client(address, "").request(api, request)
            except ConnectFailed as failure:
                failures[f"no broker answers at {address[0]}:{address[1]}: {failure.reason}"] = failure
            except (Disconnected, RequestTimedOut) as failure:
                failures[f"the broker at {address[0]}:{address[1]} did not answer {api.key.name}: {failure.reason}"] = failure
        refused = next((each.__cause__ for each in failures.values() if isinstance(each.__cause__, LoginFailed)), None)
        raise NoAnswer("; ".join(failures), is_cut_off=all(map(_is_cut_off, failures.values()))) from refused

    async def refresh(self, topics: Iterable[str], *, create: bool = False) -> None:
        """Ask for the leaders of these topics. With ``create``, brokers that do so create missing ones.

        Raises RequestRefused for a topic that has an error.
        """
        response = await self.ask(METADATA, metadata_request(topics, create=create))
        self._known.take(response)
        for topic in response.topics:
            check(str(topic.name), topic.error_code)

    async def topics(self) -> list[str]:
        """Return the names of all topics."""
        response = await self.ask(METADATA, metadata_request(None))
        return [str(topic.name) for topic in response.topics if not topic.is_internal]

    async def patiently(
        self, attempt: Callable[[], Awaitable[T]], topics: Iterable[str] = (), patience_ms: int = PATIENCE_MS
    ) -> T:
        """Return the result of ``attempt``. Repeat it after a transient error, with fresh leaders of ``topics``."""
        deadline_ms = self.timer.clock.monotonic_ms() + patience_ms
        while True:
            try:
                return await attempt()
            except ClientError as error:
                if not is_transient(error) or self.timer.clock.monotonic_ms() > deadline_ms:
                    raise
            await self.back_off(topics)

    async def back_off(self, topics: Iterable[str]) -> None:
        """Wait a moment after a transient error, and ask for the leaders of ``topics`` again."""
        await self.sleep(RETRY_BACKOFF_MS)
        try:
            await self.refresh(topics)
        except ClientError as error:
            if not is_transient(error):
                raise

    async def coordinator(self, key: str, key_type: int) -> NodeClient:
        """Return the client of the coordinator of a group or a transactional id. Raises RequestRefused."""
        found = (
            await self.ask(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type))
        ).coordinators[0]
        check(key, found.error_code, found.error_message)
        return self._client((found.host, found.port), "coordinator")

    async def list_offsets(self, wanted: Mapping[Partition, int], *, is_committed: bool = False) -> dict[Partition, int]:
        """Return the first offset at or after each partition's timestamp; the log's end if every record is earlier.

        ``is_committed``: the end is the last stable offset. Raises ClientError after all patience.
        """
        topics = {topic for topic, _ in wanted}
        found = await self.patiently(lambda: self._list_offsets(wanted, is_committed=is_committed), topics)
        late = [partition for partition, offset in found.items() if offset < 0]
        if late:
            ends = dict.fromkeys(late, LATEST_TIMESTAMP)
            found |= await self.patiently(lambda: self._list_offsets(ends, is_committed=is_committed), topics)
        return found

    async def _list_offsets(self, wanted: Mapping[Partition, int], *, is_committed: bool) -> dict[Partition, int]:
        offsets = {}
        for leader, partitions in self.by_leader(wanted).items():
            request = list_offsets_request({each: wanted[each] for each in partitions}, is_committed=is_committed)
            for partition, (offset, code) in listed_offsets(await self.node(leader).request(LIST_OFFSETS, request)).items():
                check(name_of(partition), code)
                offsets[partition] = offset
        return offsets

    def _client(self, address: Address, purpose: str) -> NodeClient:
        client = self._nodes.get((address, purpose))
        if client is None:
            connect: Any = connect_to(*address, self._tls, self._login, self._dialled.get(address))
            client = self._nodes[address, purpose] = NodeClient(connect, self.timer, self.random, self._config)
        return client


def open_cluster(
    bootstrap: Sequence[Address],
    client_id: str,
    tls: "ssl.SSLContext | None" = None,
    login: "Login | None" = None,
    dialled: Mapping[Address, Address] | None = None,
) -> AbstractAsyncContextManager[ClusterClient]:
    """Return a context with the client of a cluster, on the machine's clock and the running event loop.

    ``dialled`` has the places of nodes that are not reached at the address they advertise.
    """

    @asynccontextmanager
    async def opened() -> "AsyncIterator[ClusterClient]":
        timer = Timer(SystemClock())
        driver = AsyncioDriver(timer, asyncio.get_running_loop())
        random = Random()  # noqa: S311  spreads load, keeps no secret
        client = ClusterClient(bootstrap, timer, random, ClientConfig(client_id=client_id), tls, login, dialled)
        try:
            yield client
        finally:
            client.close()
            driver.close()
            timer.close()
            # The transports end in the next turn of the loop.
            await asyncio.sleep(0)

    return opened()
