"""A broker in this process that listens: unmodified clients connect to it. It runs on the loop that starts it.

Its listener takes a free port of 127.0.0.1 and advertises it. Restarts use the same port, so clients find the broker again.
The same holds for configured ``listeners`` with port 0. The rest comes from ``InProcessBroker``.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Never, Unpack

from odradek.broker.start.broker_server import BrokerServer
from odradek.testing import client_metrics, records, state, waiting
from odradek.testing.disk import MemoryDisk
from odradek.testing.image import Image, LinkedFileSystem
from odradek.testing.in_process import InProcessBroker, NotRunning
from odradek.testing.misuse import (
    CheckedCoroutine,
    CompletedCall,
    checked_count,
    checked_name,
    config_texts,
    ensure_awaited,
    ensure_by_name,
    ensure_known,
    must_await,
)
from odradek.testing.records import checked_topics, create_topics
from odradek.testing.severed import SeverableFileSystem
from odradek.testing.steered_clock import SteeredClock
from odradek.testing.timeline.live import LiveTimeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from types import TracebackType

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.broker.start.server import BrokerOptions
    from odradek.storage.filesystem import FileSystem
    from odradek.testing.faults.faults import Faults
    from odradek.testing.in_process import LogLine
    from odradek.testing.misuse import Named
    from odradek.testing.records import NewTopic
    from odradek.testing.severed import Watch

__tracebackhide__ = True

_CLOSING_TURNS = 3
# The members of a share group get their first partitions with their second heartbeat. A test need not wait 5 s for it.
_QUICK_SHARE_GROUPS = {"group.share.heartbeat.interval.ms": "200", "group.share.min.heartbeat.interval.ms": "200"}


class ListeningBroker(InProcessBroker):
    """A broker that ``async with`` starts and stops on the caller's loop. Await all questions to it, properties too."""

    clock: SteeredClock

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        topics: Mapping[str, int | NewTopic | None] | None = None,
        configs: Mapping[str, object] | None = None,
        clock: SteeredClock | None = None,
        background: Literal["threads", "inline", "seeded"] | None = None,
        file_system: FileSystem | None = None,
        seed: int | None = None,
        on_line: Callable[[LogLine], object] | None = None,
        timeline: bool = False,
        has_own_configs: bool = True,
    ) -> None:
        """Make a broker, in memory unless there is a ``directory``. The start makes ``topics``: numbers of partitions by name.

        ``configs`` are those of server.properties, and may have ``listeners``. With ``timeline``, the clients' requests are
        recorded from the start on. For the rest, see ``InProcessBroker``. Raises TypeError for malformed topics or configs.

        With ``has_own_configs``, a config that Kafka does not have makes the start fail, and heartbeats of share groups are
        frequent unless the configs name their interval. Pass False for configs written for another program: then an unknown
        config is only logged.
        """
        texts = config_texts(configs)
        if has_own_configs and _QUICK_SHARE_GROUPS.keys().isdisjoint(texts):
            texts = _QUICK_SHARE_GROUPS | texts
        super().__init__(
            directory,
            configs=texts,
            clock=clock or SteeredClock(),
            background=background,
            file_system=file_system or (None if directory is None else LinkedFileSystem()),
            seed=seed,
            on_line=on_line,
        )
        self._topics = checked_topics(topics)
        self._has_own_configs = has_own_configs
        # The loop that the broker runs on, and its questions that were not awaited.
        self._loop: asyncio.AbstractEventLoop | None = None
        self.unawaited: set[CheckedCoroutine[Any]] = set()
        self._server: BrokerServer | None = None
        # The ports of the first start, by listener.
        self._ports: dict[str, int] = {}
        self._address = ""
        # The clients' requests and their answers.
        self.timeline = LiveTimeline(self)
        # Called with the event and the fields of each line of the log.
        self.line_watchers: list[Callable[[str, Mapping[str, object]], object]] = [self.timeline.note_line]
        if timeline:
            self.timeline.start()
        self._restarting: asyncio.Task[None] | None = None
        self._watch: Watch | None = None

    @cached_property
    def faults(self) -> Faults:
        """Fault rules. A broker without rules pays nothing."""
        from odradek.testing.faults.faults import Faults  # 4.8 ms

        faults = Faults(self)
        faults.serve(self._core)
        return faults

    @property
    def bootstrap_servers(self) -> str:
        """Return the bootstrap address, "127.0.0.1:54321", also after a stop. Raises RuntimeError before the first start."""
        if not self._address:
            raise RuntimeError("the broker has not been started: use with Broker() as broker, or async with")
        return self._address

    @property
    def bound_address(self) -> tuple[str, int]:
        """Return (host, port) of the first listener, as it is bound. Raises RuntimeError if the broker does not run."""
        return self._server_of(self.core).bound_address

    def bound_at(self, listener: str) -> tuple[str, int]:
        """Return (host, port) of a listener, as it is bound. Raises RuntimeError if the broker does not run."""
        endpoint = self._server_of(self.core).bound[listener]
        return endpoint.host, endpoint.port

    def ensure_may_ask(self, what: str) -> None:
        """Raise RuntimeError if the broker cannot be asked: it does not run, or its loop runs in another thread."""
        if self._loop is not None and self._loop.is_running() and not _runs_here(self._loop):
            raise RuntimeError(f"the broker runs in its own thread: call broker.{what}(...) inside with Broker() as broker")
        if self._core is None and self._restarting is None:
            raise not_running(what)

    async def start(self) -> None:
        """Start a process on the content of the disk, listen, and make the missing topics.

        Raises the errors of ``BrokerServer.start``, InvalidConfig, and the KafkaError of a refused topic.
        """
        await self._start_process()
        core = self._core
        try:
            # Topics that were changed since stay as they are.
            await create_topics(self, self._topics, takes_others=True)
        except BaseException:
            # This process may be gone, and another one may run.
            if self._core is core:
                super().kill()
            raise

    def _options(self) -> BrokerOptions:
        # Looking for directories would be most of the work when a test lets a week pass.
        return replace(super()._options(), looks_for_directories=False)

    async def _start_process(self) -> None:
        if self.is_running:
            raise RuntimeError("the broker is already running")
        severable = self._severable = SeverableFileSystem(self.disk)
        severable.watch = self._watch
        with self.noting():
            listeners = self._configs.get("listeners", "PLAINTEXT://127.0.0.1:0")
            config = self._config(listeners=self._on_same_ports(listeners))
            if self._has_own_configs:
                ensure_known(config.warnings)
            try:
                server = await BrokerServer.start(self._shared_server(config), self._options())
            except BaseException:
                severable.sever()
                raise
            try:
                # The broker may have been killed meanwhile.
                severable.check()
            except OSError:
                server.abandon()
                raise
            server.broker.log_start()
        self._server, self._core, self._loop = server, server.broker, asyncio.get_running_loop()
        self._ports = {name: endpoint.port for name, endpoint in server.bound.items()}
        self._serve(server.broker)
        host, port = server.broker.advertised(server.broker.listener_names[0])
        self._address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _on_same_ports(self, listeners: str) -> str:
        """Replace port 0 in ``listeners`` with the ports of the last start."""
        placed = []
        for listener in listeners.split(","):
            address, _, port = listener.strip().rpartition(":")
            taken = self._ports.get(address.partition("://")[0].upper())
            placed.append(listener if port != "0" or taken is None else f"{address}:{taken}")
        return ",".join(placed)

    @must_await
    async def stop(self) -> None:
        """Stop in good order: answer waiting requests, close the connections, flush, mark the stop as clean."""
        await self.restarted()
        core = self.core
        if "faults" in self.__dict__:
            self.faults.let_go()
        self._core = None
        self._serve(None)
        try:
            with self.noting():
                await self._server_of(core).stop()
                await asyncio.sleep(0)
        except BaseException:
            # An interrupted stop must not leave sockets and files open.
            self._severable.sever()
            self._abandon(core)
            raise
        finally:
            self._server = None
            self._forget_answers()

    def image(self) -> Image:
        """Return the state now. Raises RuntimeError if the broker does not run, TypeError for a disk of another kind, OSError."""
        return Image.of(self.core, self.disk, self.clock, self._configs, has_own_configs=self._has_own_configs)

    async def restore_image(self, image: Image) -> None:
        """Go back to ``image``, in a new process at the same address and with the same configs. Connections break.

        Raises RuntimeError if the broker does not run, ValueError for the image of a broker of the other kind, OSError.
        """
        await self.restarted()
        if not image.fits(self.core, self.disk):
            raise ValueError(
                "a snapshot of a broker in memory can only be restored in memory, and one of a directory only in a directory"
            )
        directory = self.core.log_manager.directories.all[0].path
        self.kill()
        # The transports close in one turn of the loop.
        await asyncio.sleep(0)
        self.disk = image.bring_to(self.disk, directory)
        self.clock.read_as(image.clock)
        await self._start_process()

    def kill(self) -> CompletedCall:
        """End the process as kill -9 does: the disk keeps the written bytes, requests are not answered."""
        restarting, self._restarting = self._restarting, None
        if restarting is not None and not restarting.done():
            restarting.cancel()
            if self._core is None:
                self._severable.sever()
                return CompletedCall()
        return super().kill()

    def restart_now(self, *, lose_power: bool = False) -> None:
        """End the process as kill -9 or a loss of power does, and start another one at once. Call it on the loop.

        ``restarted`` waits for the start. Raises TypeError for a disk that loses nothing with its power.
        """
        before = self._restarting
        if lose_power:
            self.lose_power()
        else:
            self.kill()
        self._restarting = asyncio.ensure_future(self._start_again(before))

    def ensure_loses_power(self) -> None:
        """Raise TypeError for a disk that loses nothing with its power."""
        if not isinstance(self.disk, MemoryDisk):
            raise TypeError("only a broker in memory can lose power: make it without a directory")

    def watch_disk(self, watch: Watch | None) -> None:
        """Route all appends and syncs through ``watch``; None removes it."""
        self._watch = self._severable.watch = watch

    async def restarted(self) -> None:
        """Wait until no restart is under way. Raises the errors of ``start``."""
        while (restarting := self._restarting) is not None:
            # A finished restart may belong to a closed loop.
            if not restarting.done():
                await asyncio.wait([restarting])
            if self._restarting is restarting:
                return restarting.result()
        return None

    @must_await
    async def create_topics(self, topics: Mapping[str, int | NewTopic | None]) -> None:
        """Make the topics that are missing, with a number of partitions or as their ``NewTopic`` says.

        Raises KafkaError if a topic is refused, or exists and differs.
        """
        await create_topics(self, topics)

    @must_await
    async def produce(self, topic: str, rows: Iterable[object], *, partition: int | None = None) -> list[records.StoredRecord]:
        """Write rows: values, (key, value) or (key, value, headers). Returns the records with their places.

        Bytes are written as they are, text as UTF-8, None as null, everything else as JSON. A key decides on the partition as in
        Kafka's clients; rows without keys go to the partitions in turn, or all go to ``partition``. Raises KafkaError.
        """
        await self.restarted()
        return await records.produce(self, topic, rows, partition)

    @must_await
    async def records(self, topic: str, *, isolation_level: records.Isolation = "read_uncommitted") -> list[records.StoredRecord]:
        """Return all records of a topic, partition by partition. Raises KafkaError if there is no such topic."""
        await self.restarted()
        return await records.read(self, topic, isolation_level)

    @must_await
    async def wait_for(
        self, *wrong: Never, within: float = waiting.DEFAULT_WITHIN_S, **condition: Unpack[waiting.Condition]
    ) -> None:
        """Wait until a group, a transactional id or a topic meets the condition: see ``waiting.Condition``.

        Raises NotReached, an AssertionError that says what was there instead, after ``within`` seconds.
        """
        ensure_by_name("wait_for", 'wait_for(group="g", state="Stable")', wrong)
        await self.restarted()
        await waiting.wait_for(self, condition, within)

    @must_await
    async def subscribe_client_metrics(
        self,
        *prefixes: str,
        interval_ms: int = 100,
        match: Mapping[str, str] | None = None,
        name: str = client_metrics.SUBSCRIPTION,
    ) -> None:
        """Ask clients for metrics by prefixes of their names, or for all, every ``interval_ms`` (KIP-714).

        ``match`` has patterns by attribute. Raises KafkaError if the subscription is refused.
        """
        await self.restarted()
        configs = {
            "metrics": ",".join(checked_name("metric's prefix", prefix) for prefix in prefixes) or "*",
            "interval.ms": str(checked_count("interval_ms", interval_ms)),
            "match": client_metrics.match_text(match) or None,
        }
        await client_metrics.subscribe(self, configs, name)

    def client_metrics(self, client_id: str | None = None) -> client_metrics.ClientMetrics:
        """Return the metrics that a client, or all clients, have pushed. ``subscribe_client_metrics`` asks for them."""
        return client_metrics.measured(self.client_pushes, client_id)

    @must_await
    async def lag(self, group: str) -> int:
        """Return how many records a group is behind, in all its partitions together.

        Raises AssertionError if there is no such group, or it has neither subscribed nor committed anything yet.
        """
        await self.restarted()
        return state.lag_of(await state.groups(self), group)

    @property
    @must_await
    async def topics(self) -> Named[str, state.Topic]:
        """Return the topics by name, without the coordinators' own."""
        await self.restarted()
        return state.topics(self)

    @property
    @must_await
    async def groups(self) -> Named[str, state.Group]:
        """Return the groups by group id."""
        await self.restarted()
        return await state.groups(self)

    @property
    @must_await
    async def transactions(self) -> Named[str, state.Transaction]:
        """Return the transactions by transactional id."""
        await self.restarted()
        return await state.transactions(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, traceback)
        ensure_awaited(self.unawaited, error)

    async def contents(self) -> list[tuple[str, state.Topic | state.Group | state.Transaction]]:
        """Return every topic, group and transactional id, by name."""
        return [*state.topics(self).items(), *(await state.groups(self)).items(), *(await state.transactions(self)).items()]

    def _note(self, level: str, event: str, fields: Mapping[str, object]) -> None:
        super()._note(level, event, fields)
        for watch in self.line_watchers:
            watch(event, fields)

    def _abandon(self, core: BrokerCore) -> None:
        self._serve(None)
        self._server_of(core).abandon()
        self._server = None

    async def _start_again(self, before: asyncio.Task[None] | None) -> None:
        """Start once the start ``before`` this one, of a killed process, has ended."""
        if before is not None:
            await asyncio.gather(before, return_exceptions=True)
        # The old listener's socket closes in these turns.
        for _ in range(_CLOSING_TURNS):
            await asyncio.sleep(0)
        await self.start()

    def _serve(self, core: BrokerCore | None) -> None:
        self.clock.serve(core)
        if "faults" in self.__dict__:
            self.faults.serve(core)

    def _server_of(self, core: BrokerCore) -> BrokerServer:
        if self._server is None or self._server.broker is not core:
            raise RuntimeError("the broker has no listener")
        return self._server


def not_running(what: str) -> NotRunning:
    """Return the error for a test that asks a broker that does not run."""
    return NotRunning(
        f"broker.{what} needs a running broker: use with Broker() as broker, or async with; after a stop, call start()"
    )


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
