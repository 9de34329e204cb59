"""Coroutines that a broker on the caller's loop answers with. They raise a helpful error if they are not awaited."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, Never, ParamSpec, Protocol, TypeVar

__tracebackhide__ = True

P = ParamSpec("P")
T = TypeVar("T")


class Asker(Protocol):
    """The broker that is asked. ``unawaited`` has the questions that were not awaited yet."""

    unawaited: set[Asked[Any]]

    def ensure_may_ask(self, what: str) -> None:
        """Raise RuntimeError if the broker cannot be asked here."""


AskerT = TypeVar("AskerT", bound=Asker)


class Asked(Coroutine[Any, Any, T], Generic[T]):
    """The coroutine of a question. Using it as if it were the answer raises an error that says to await it."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], text: str, place: str, unawaited: set[Asked[Any]]) -> None:
        self.text = text
        self.place = place
        self._coroutine = coroutine
        self._unawaited = unawaited
        unawaited.add(self)

    def __await__(self) -> Generator[Any, Any, T]:
        self._unawaited.discard(self)
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """See Coroutine."""
        self._unawaited.discard(self)
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """See Coroutine."""
        self._unawaited.discard(self)
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """See Coroutine."""
        self._unawaited.discard(self)
        self._coroutine.close()

    def __repr__(self) -> str:
        return f"<{self.text} at {self.place}, not awaited>"

    def __getattr__(self, name: str) -> Never:
        raise AttributeError(f"{self._hint()}, then use {name} of the result")

    def _misused(self, *_: object) -> Never:
        raise TypeError(self._hint())

    __getitem__ = __iter__ = __len__ = __contains__ = __bool__ = _misused
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __index__ = _misused

    def _hint(self) -> str:
        return f"{self.text} must be awaited here: await {self.text}"


class Done:
    """A result for a method that has already done its work. Awaiting it does nothing."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


def asked(ask: Callable[Concatenate[AskerT, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[AskerT, P], Asked[T]]:
    """Make the method return an ``Asked``. Calling it raises RuntimeError if the broker cannot be asked here."""

    @wraps(ask)
    def ask_now(broker: AskerT, /, *arguments: P.args, **named: P.kwargs) -> Asked[T]:
        text = f"broker.{ask.__name__}{'(...)' if arguments or named else ''}"
        broker.ensure_may_ask(ask.__name__)
        caller = sys._getframe(1)  # noqa: SLF001  the line that asked
        place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        return Asked(ask(broker, *arguments, **named), text, place, broker.unawaited)

    return ask_now


def ensure_awaited(unawaited: set[Asked[Any]], error: BaseException | None) -> None:
    """Raise RuntimeError for questions that a test forgot to await, unless the test fails anyway."""
    forgotten = sorted(unawaited, key=lambda each: each.place)
    for each in forgotten:
        each.close()
    if forgotten and error is None:
        lines = "; ".join(f"await {each.text} at {each.place}" for each in forgotten)
        raise RuntimeError(f"these calls were not awaited, so they did nothing: {lines}")
