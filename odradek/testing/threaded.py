"""The broker of a test suite: on the caller's event loop with ``async with``, in a thread of its own with ``with``.

``ThreadedBroker`` is for a test that has no event loop, or another one: every method returns when its work is done. A
``Snapshot`` of either kind of broker can start brokers of both kinds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Never, Self, TypeVar, Unpack

from odradek.testing import client_metrics, waiting
from odradek.testing.broker_thread import BrokerThread, ThreadedClock, ThreadedTimeline
from odradek.testing.image import Image, LinkedDirectory, LinkedFileSystem, link_tree
from odradek.testing.listening import ListeningBroker
from odradek.testing.misuse import CheckedCoroutine, Named, checked_name, config_texts, must_await
from odradek.testing.timeline.live import LiveTimeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from odradek.testing import records, state
    from odradek.testing.faults.threaded import ThreadedFaults
    from odradek.testing.in_process import LogLine
    from odradek.testing.records import NewTopic
    from odradek.testing.steered_clock import SteeredClock

T = TypeVar("T")

__tracebackhide__ = True

_DESCRIBE_S = 5.0


class ThreadedBroker:
    """A view of a broker in a thread of its own.

    Several views may share a broker, each with a ``namespace``: the suffix of the names that ``topic``, ``group`` and
    ``transactional_id`` return. A view with a namespace shows only names with that suffix, and only the log and the timeline
    since it was made.
    """

    def __init__(self, thread: BrokerThread, namespace: str = "") -> None:
        self._thread = thread
        self._namespace = namespace
        self._known_lines = len(thread.broker.lines) if namespace else 0
        self._since = thread.broker.timeline.place if namespace else 0

    @property
    def bootstrap_servers(self) -> str:
        """Return the bootstrap address: "127.0.0.1:54321"."""
        return self._thread.broker.bootstrap_servers

    @property
    def clock(self) -> ThreadedClock:
        """Return the broker's clock. Clients use the machine's."""
        return ThreadedClock(self._thread)

    @property
    def faults(self) -> ThreadedFaults:
        """Return the fault rules."""
        from odradek.testing.faults.threaded import ThreadedFaults

        return ThreadedFaults(self._thread)

    @property
    def is_running(self) -> bool:
        """Return whether the broker was started, and neither stopped nor killed since."""
        return self._thread.is_running

    @property
    def log(self) -> list[LogLine]:
        """Return the broker's log."""
        return list(self._thread.broker.lines)[self._known_lines :]

    @property
    def timeline(self) -> ThreadedTimeline:
        """Return the clients' requests and answers, recorded by ``Broker(timeline=True)`` or since ``timeline.start()``."""
        return ThreadedTimeline(self._thread, self._thread.broker.timeline, self._since)

    def another_timeline(self) -> ThreadedTimeline:
        """Return a timeline that is started and stopped independently. It lacks the coordinators' reports."""
        return ThreadedTimeline(self._thread, LiveTimeline(self._thread.broker))

    def start(self) -> None:
        """Start the broker again, at the same address and with the content of its disk."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the broker in good order."""
        self._thread.stop()

    def kill(self) -> None:
        """End the broker as kill -9 does: its disk keeps the written bytes, requests are not answered."""
        self._thread.kill()

    def close(self) -> None:
        """Stop the broker if it runs."""
        if self.is_running:
            self.stop()

    def topic(self, name: str, new: int | NewTopic | None = None) -> str:
        """Return the topic's name in this namespace, and make the topic if it is missing.

        ``new`` is its number of partitions or a ``NewTopic``. Raises KafkaError if the topic exists and differs.
        """
        own = checked_name("topic", name) + self._namespace
        self._thread.run(lambda: self._thread.broker.create_topics({own: new}))
        return own

    def group(self, name: str) -> str:
        """Return the group's id in this namespace."""
        return checked_name("group", name) + self._namespace

    def transactional_id(self, name: str) -> str:
        """Return the transactional id in this namespace."""
        return checked_name("transactional id", name) + self._namespace

    def produce(self, topic: str, rows: Iterable[object], *, partition: int | None = None) -> list[records.StoredRecord]:
        """Write rows to a topic: see ``ListeningBroker.produce``."""
        return self._thread.run(lambda: self._thread.broker.produce(topic, rows, partition=partition))

    def records(self, topic: str, *, isolation_level: records.Isolation = "read_uncommitted") -> list[records.StoredRecord]:
        """Return all records of a topic, partition by partition. Raises KafkaError if there is no such topic."""
        return self._thread.run(lambda: self._thread.broker.records(topic, isolation_level=isolation_level))

    def wait_for(self, *wrong: Never, within: float = waiting.DEFAULT_WITHIN_S, **condition: Unpack[waiting.Condition]) -> None:
        """Wait until a group, a transactional id or a topic meets the condition: see ``waiting.Condition``.

        Raises NotReached, an AssertionError that says what was there instead, after ``within`` seconds. Raises RuntimeError on
        a thread whose event loop runs: clients on that loop would be blocked.
        """
        _ensure_no_loop_runs()
        self._thread.run(lambda: self._thread.broker.wait_for(*wrong, within=within, **condition))

    def subscribe_client_metrics(
        self,
        *prefixes: str,
        interval_ms: int = 100,
        match: Mapping[str, str] | None = None,
        name: str = client_metrics.SUBSCRIPTION,
    ) -> None:
        """Ask clients for their metrics: see ``ListeningBroker.subscribe_client_metrics``."""
        broker = self._thread.broker
        self._thread.run(lambda: broker.subscribe_client_metrics(*prefixes, interval_ms=interval_ms, match=match, name=name))

    def client_metrics(self, client_id: str | None = None) -> client_metrics.ClientMetrics:
        """Return the metrics that a client, or all clients, have pushed. ``subscribe_client_metrics`` asks for them."""
        return client_metrics.measured(list(self._thread.broker.client_pushes), client_id)

    def lag(self, group: str) -> int:
        """Return how many records a group is behind: see ``ListeningBroker.lag``."""
        return self._thread.run(lambda: self._thread.broker.lag(group))

    @property
    def topics(self) -> dict[str, state.Topic]:
        """Return the topics by name, without the coordinators' own."""
        return self._own(self._thread.run(lambda: self._thread.broker.topics))

    @property
    def groups(self) -> dict[str, state.Group]:
        """Return the groups by group id."""
        return self._own(self._thread.run(lambda: self._thread.broker.groups))

    @property
    def transactions(self) -> dict[str, state.Transaction]:
        """Return the transactions by transactional id."""
        return self._own(self._thread.run(lambda: self._thread.broker.transactions))

    def describe(self) -> str:
        """Describe topics, groups and transactional ids in words, a line each; for the report of a failed test."""
        if not self.is_running:
            return "the broker is not running"
        try:
            found = self._thread.run(self._thread.broker.contents, _DESCRIBE_S)
        except Exception as error:  # noqa: BLE001  the report must show the test's own failure
            return f"cannot read its content: {error!r}"
        return "\n".join(str(each) for name, each in found if name.endswith(self._namespace)) or "it is empty"

    def snapshot(self) -> Snapshot:
        """Return everything that the broker holds now, in all namespaces. Raises TypeError for several ``log.dirs``, OSError."""

        async def on_loop() -> Image:
            await self._thread.broker.restarted()
            return self._thread.broker.image()

        return Snapshot(self._thread.run(on_loop))

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to ``snapshot``, at the same address and with the same configs. Connections of clients break.

        Raises RuntimeError if the broker does not run, ValueError for a snapshot of the other kind (memory, directory),
        OSError.
        """
        image = _image_of(snapshot)
        self._thread.run(lambda: self._thread.broker.restore_image(image))

    def in_namespace(self, namespace: str) -> ThreadedBroker:
        """Return another view of the same broker."""
        return ThreadedBroker(self._thread, namespace)

    def _own(self, found: Named[str, T]) -> Named[str, T]:
        return Named.of(found.kind, {name: each for name, each in found.items() if name.endswith(self._namespace)})

    def __enter__(self) -> Self:
        if not self.is_running:
            self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


class Broker(ListeningBroker):
    """See ``ListeningBroker``. Its ``with`` enters a ``ThreadedBroker``."""

    _threaded: ThreadedBroker | None = None

    @must_await
    async def snapshot(self) -> Snapshot:
        """Return everything that the broker holds now. Raises TypeError for several ``log.dirs``, OSError."""
        await self.restarted()
        return Snapshot(self.image())

    @must_await
    async def restore(self, snapshot: Snapshot) -> None:
        """See ``ThreadedBroker.restore``."""
        await self.restore_image(_image_of(snapshot))

    def __enter__(self) -> ThreadedBroker:
        threaded = ThreadedBroker(BrokerThread(self))
        threaded.start()
        self._threaded = threaded
        return threaded

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._threaded is not None:
            self._threaded.__exit__(kind, error, traceback)


class Snapshot:
    """The state of a broker at one moment. It outlives the broker, and nothing changes it.

    ``with`` frees its disk space at the end. Otherwise the space is freed with the snapshot and the brokers made from it.
    """

    def __init__(self, image: Image) -> None:
        self.image = image

    def fork(self, *, configs: Mapping[str, object] | None = None) -> Broker:
        """Return another broker, not yet started, with this state: the same configs, and ``configs`` over them.

        It listens on a port of its own. If it has a directory, the directory is removed when the broker is left. Raises
        OSError.
        """
        image = _image_of(self)
        changed = {**image.fork_configs(), **config_texts(configs)}
        if not isinstance(image.content, LinkedDirectory):
            files = image.content.fork()
            return Broker(configs=changed, clock=image.clock.copy(), file_system=files, has_own_configs=image.has_own_configs)
        assert image.origin is not None  # noqa: S101  a linked directory has an origin
        directory = LinkedDirectory(image.origin, "fork")
        link_tree(image.content.path, directory.path)
        return _BrokerOnLinks(directory, changed, image.clock.copy(), has_own_configs=image.has_own_configs)

    def close(self) -> None:
        """Free the snapshot's disk space. It cannot be forked any more. Idempotent."""
        if isinstance(self.image.content, LinkedDirectory):
            self.image.content.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


class _BrokerOnLinks(Broker):
    """A fork on a directory. The directory is removed with it."""

    def __init__(
        self, directory: LinkedDirectory, configs: Mapping[str, object], clock: SteeredClock, *, has_own_configs: bool
    ) -> None:
        files = LinkedFileSystem(syncs=False)
        super().__init__(directory.path, configs=configs, clock=clock, file_system=files, has_own_configs=has_own_configs)
        self._links = directory

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            super().__exit__(kind, error, traceback)
        finally:
            self._links.remove()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await super().__aexit__(kind, error, traceback)
        finally:
            self._links.remove()


def _image_of(snapshot: object) -> Image:
    """Return the image. Raises TypeError for anything but a snapshot, RuntimeError for a closed one."""
    if not isinstance(snapshot, Snapshot):
        instead = "await broker.snapshot() first" if isinstance(snapshot, CheckedCoroutine) else f"not {snapshot!r}"
        raise TypeError(f"this needs a snapshot returned by broker.snapshot(): {instead}")
    content = snapshot.image.content
    if isinstance(content, LinkedDirectory) and content.is_removed:
        raise RuntimeError("the snapshot is closed: use it before close(), or inside its with block")
    return snapshot.image


def _ensure_no_loop_runs() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("this call would block the running event loop: use await asyncio.to_thread(broker.wait_for, ...)")
