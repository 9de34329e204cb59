"""The broker of a test that has no event loop, or another one: every method returns when the broker has done what it says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self, TypeVar, Unpack

from odradek.testing import waiting
from odradek.testing.threaded_clock import ThreadedClock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from odradek.testing import records, state
    from odradek.testing.broker_thread import BrokerThread
    from odradek.testing.in_process import LogLine
    from odradek.testing.topics import NewTopic

T = TypeVar("T")

_DESCRIBE_S = 5.0


class ThreadedBroker:
    """A view of a broker in a thread of its own.

    Several views may share a broker, each with a ``namespace``: what ends the names that ``topic``, ``group`` and
    ``transactional_id`` give. A view with a namespace shows what is named so, and the lines of the log since it was made.
    """

    def __init__(self, thread: BrokerThread, namespace: str = "") -> None:
        self._thread = thread
        self._namespace = namespace
        self._known_lines = len(thread.broker.lines) if namespace else 0

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect to: "127.0.0.1:54321"."""
        return self._thread.broker.bootstrap_servers

    @property
    def clock(self) -> ThreadedClock:
        """The broker's time. Clients go by the machine's."""
        return ThreadedClock(self._thread)

    @property
    def is_running(self) -> bool:
        """Whether it was started, and neither stopped nor killed since."""
        return self._thread.is_running

    @property
    def log(self) -> list[LogLine]:
        """What the broker has logged."""
        return list(self._thread.broker.lines)[self._known_lines :]

    def start(self) -> None:
        """Start the broker again, at the same address and on what its disk holds."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the broker in good order."""
        self._thread.stop()

    def kill(self) -> None:
        """End the broker as kill -9 does: its disk keeps what was written, requests are not answered."""
        self._thread.kill()

    def close(self) -> None:
        """Stop the broker if it runs."""
        if self.is_running:
            self.stop()

    def topic(self, name: str, new: int | NewTopic | None = None) -> str:
        """The topic's name in this namespace. If the topic is not there, it is made with so many partitions, or as said."""
        own = name + self._namespace
        self._thread.run(lambda: self._thread.broker.create_topics({own: new}))
        return own

    def group(self, name: str) -> str:
        """The group's id in this namespace."""
        return name + self._namespace

    def transactional_id(self, name: str) -> str:
        """The transactional id in this namespace."""
        return name + self._namespace

    def produce(self, topic: str, rows: Iterable[object], *, partition: int | None = None) -> list[records.StoredRecord]:
        """Write rows to a topic: see ``ListeningBroker.produce``."""
        return self._thread.run(lambda: self._thread.broker.produce(topic, rows, partition=partition))

    def records(self, topic: str, *, isolation_level: records.Isolation = "read_uncommitted") -> list[records.StoredRecord]:
        """All records of a topic, partition by partition. Raises KafkaError where there is no such topic."""
        return self._thread.run(lambda: self._thread.broker.records(topic, isolation_level=isolation_level))

    def wait_for(self, *, within: float = waiting.DEFAULT_WITHIN_S, **condition: Unpack[waiting.Condition]) -> None:
        """Return when a group, a transactional id or a topic is as asked: see ``waiting.Condition``.

        Raises NotReached, an AssertionError that says what was there instead, after ``within`` seconds; and RuntimeError on a
        thread whose event loop runs: clients on that loop could not go on.
        """
        _ensure_no_loop_runs()
        self._thread.run(lambda: self._thread.broker.wait_for(within=within, **condition))

    def lag(self, group: str) -> int:
        """How many records a group is behind, in all its partitions together. AssertionError where there is no such group."""
        return self._thread.run(lambda: self._thread.broker.lag(group))

    @property
    def topics(self) -> dict[str, state.Topic]:
        """By name, without the coordinators' own."""
        return self._own(self._thread.run(lambda: self._thread.broker.topics))

    @property
    def groups(self) -> dict[str, state.Group]:
        """By group id."""
        return self._own(self._thread.run(lambda: self._thread.broker.groups))

    @property
    def transactions(self) -> dict[str, state.Transaction]:
        """By transactional id."""
        return self._own(self._thread.run(lambda: self._thread.broker.transactions))

    def describe(self) -> str:
        """Topics, groups and transactional ids in words, a line each; for the report of a failed test."""
        if not self.is_running:
            return "it does not run"
        try:
            found = self._thread.run(self._thread.broker.contents, _DESCRIBE_S)
        except Exception as error:  # noqa: BLE001  the test has failed for another reason, which is to be seen
            return f"it does not tell what it holds: {error!r}"
        return "\n".join(str(each) for name, each in found if name.endswith(self._namespace)) or "it holds nothing"

    def in_namespace(self, namespace: str) -> ThreadedBroker:
        """Another view of the same broker."""
        return ThreadedBroker(self._thread, namespace)

    def _own(self, found: dict[str, T]) -> dict[str, T]:
        return {name: each for name, each in found.items() if name.endswith(self._namespace)}

    def __enter__(self) -> Self:
        if not self.is_running:
            self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _ensure_no_loop_runs() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("this would hold up the event loop that runs here: await asyncio.to_thread(broker.wait_for, ...)")
