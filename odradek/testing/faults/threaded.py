"""The ``Faults`` of a broker in a thread of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, Self, Unpack

from odradek.testing.faults.fault import DEFAULT_WITHIN_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from odradek.testing.broker_thread import BrokerThread
    from odradek.testing.faults.fault import Fault, Fired
    from odradek.testing.faults.faults import Faults
    from odradek.testing.faults.vocabulary import FaultKeywords

__tracebackhide__ = True


class ThreadedFault:
    """The handle of a rule: see ``Fault``."""

    def __init__(self, thread: BrokerThread, fault: Fault) -> None:
        self._thread = thread
        self._fault = fault

    def __str__(self) -> str:
        return str(self._fault)

    @property
    def hits(self) -> int:
        """Return how often the rule has fired."""
        self._fault.ensure_sound()
        return self._fault.hits

    @property
    def fired(self) -> list[Fired]:
        """Return the firings, in order."""
        self._fault.ensure_sound()
        return list(self._fault.fired)

    def wait(self, n: int = 1, *, within: float = DEFAULT_WITHIN_S) -> None:
        """Wait until the rule has fired ``n`` times. Raises NotFired, an AssertionError, after ``within`` seconds."""
        self._thread.run(lambda: self._fault.wait(n, within=within))

    def remove(self) -> None:
        """Remove the rule. Requests that it holds go on."""
        self._thread.call_anyway(self._fault.remove)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.remove()
        if error is None:
            self._fault.ensure_sound()


class ThreadedFaults:
    """The rules of a broker: see ``Faults``. They outlive its processes, and apply to all users of a shared broker."""

    def __init__(self, thread: BrokerThread) -> None:
        self._thread = thread

    @property
    def fired(self) -> list[Fired]:
        """Return the firings of all rules, in order."""
        return list(self._faults.fired)

    def add(self, /, *wrong: Never, **words: Unpack[FaultKeywords]) -> ThreadedFault:
        """Add a rule: see ``vocabulary``. Raises BadRule."""
        return ThreadedFault(self._thread, self._thread.call_anyway(lambda: self._faults.add(*wrong, **words)))

    def load(self, rules: Iterable[Mapping[str, Any]]) -> list[ThreadedFault]:
        """Add rules in their declarative form. If it raises BadRule, none was added."""
        return [ThreadedFault(self._thread, each) for each in self._thread.call_anyway(lambda: self._faults.load(rules))]

    def clear(self) -> None:
        """Remove all rules. Requests that they hold go on; ``fired`` is kept."""
        self._thread.call_anyway(self._faults.clear)

    @property
    def _faults(self) -> Faults:
        return self._thread.broker.faults
