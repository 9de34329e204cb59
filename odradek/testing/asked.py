"""What a broker on the caller's loop answers with: something to be awaited, which says so where it is not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, Never, ParamSpec, Protocol, TypeVar

from typing_extensions import override

__tracebackhide__ = True

P = ParamSpec("P")
T = TypeVar("T")


class Asker(Protocol):
    """The broker that is asked. ``unawaited`` has what nobody has awaited yet."""

    unawaited: set[Asked[Any]]

    def ensure_may_ask(self, what: str) -> None:
        """Raises RuntimeError where the broker cannot be asked here."""


AskerT = TypeVar("AskerT", bound=Asker)


class Asked(Coroutine[Any, Any, T], Generic[T]):
    """The coroutine of a question. Whatever uses it as the answer is told to await it."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], text: str, place: str, unawaited: set[Asked[Any]]) -> None:
        self.text = text
        self.place = place
        self._coroutine = coroutine
        self._unawaited = unawaited
        unawaited.add(self)

    def __await__(self) -> Generator[Any, Any, T]:
        self._unawaited.discard(self)
        return self._coroutine.__await__()

    @override
    def send(self, value: Any) -> Any:
        self._unawaited.discard(self)
        return self._coroutine.send(value)

    @override
    def throw(self, *error: Any) -> Any:
        self._unawaited.discard(self)
        return self._coroutine.throw(*error)

    @override
    def close(self) -> None:
        self._unawaited.discard(self)
        self._coroutine.close()

    def __repr__(self) -> str:
        return f"<{self.text} of {self.place}, to be awaited>"

    def __getattr__(self, name: str) -> Never:
        raise AttributeError(f"{self._hint()}, and then {name} of that")

    def _misused(self, *_: object) -> Never:
        raise TypeError(self._hint())

    __getitem__ = __iter__ = __len__ = __contains__ = __bool__ = _misused
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __index__ = _misused

    def _hint(self) -> str:
        return f"{self.text} is to be awaited here: await {self.text}"


class Done:
    """Nothing to wait for. What returns it has been done, and may be awaited like the rest."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


def asked(ask: Callable[Concatenate[AskerT, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[AskerT, P], Asked[T]]:
    """The method as one whose coroutine is an ``Asked``, and which is refused where the broker does not run."""

    @wraps(ask)
    def ask_now(broker: AskerT, /, *arguments: P.args, **named: P.kwargs) -> Asked[T]:
        text = f"broker.{ask.__name__}{'(...)' if arguments or named else ''}"
        broker.ensure_may_ask(ask.__name__)
        caller = sys._getframe(1)  # noqa: SLF001  where it was asked
        place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        return Asked(ask(broker, *arguments, **named), text, place, broker.unawaited)

    return ask_now


def ensure_awaited(unawaited: set[Asked[Any]], error: BaseException | None) -> None:
    """Raise RuntimeError for what a test has forgotten to await, unless it fails anyway."""
    forgotten = sorted(unawaited, key=lambda each: each.place)
    for each in forgotten:
        each.close()
    if forgotten and error is None:
        lines = "; ".join(f"await {each.text} at {each.place}" for each in forgotten)
        raise RuntimeError(f"asked and not awaited, so that nothing was done: {lines}")
