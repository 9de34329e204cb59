"""Errors for a test that misuses the kit. Each error says what to do instead.

Arguments are checked. A broker on the caller's loop returns a ``CheckedCoroutine``: it raises a helpful error if it is not
awaited.

pytest hides the frames of modules with ``__tracebackhide__``, so it shows an error at the line of the test.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, Never, ParamSpec, Protocol, TypeVar

from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.ignored import IGNORED
from odradek.protocol.errors import KafkaError

__tracebackhide__ = True

K = TypeVar("K")
V = TypeVar("V")

_LONGEST_WAIT_S: Final = 86_400
_MOST: Final = (1 << 63) - 1


class Named(dict[K, V]):
    """A dict whose KeyError lists the known keys."""

    kind = "entry"

    @classmethod
    def of(cls, kind: str, found: Mapping[K, V]) -> Named[K, V]:
        """Make a ``Named`` of ``found``; ``kind`` is the singular name of an entry."""
        named = cls(found)
        named.kind = kind
        return named

    def __missing__(self, key: K) -> V:
        raise KeyError(f"there is no {self.kind} {key!r}; {self.kind}s: {', '.join(map(str, self)) or 'none'}")


def checked_rows(rows: object) -> Iterable[object]:
    """Return the rows of ``produce``. Raises TypeError."""
    if isinstance(rows, str | bytes | bytearray | memoryview | Mapping | tuple) or not isinstance(rows, Iterable):
        raise TypeError(f"rows must be a list with a row for each record: produce(topic, [{rows!r}]), not {rows!r}")
    return rows


def checked_name(kind: str, name: object) -> str:
    """Return a name, of a topic for example. Raises TypeError."""
    if not isinstance(name, str):
        raise TypeError(f"{kind} must be a string, not {name!r}")
    return name


def config_texts(configs: object) -> dict[str, str]:
    """Return configs as Kafka writes them: booleans in lower case, lists with commas. Raises TypeError."""
    if configs is None:
        return {}
    if not isinstance(configs, Mapping):
        raise TypeError(f'configs must be a dict of names and values: configs={{"num.partitions": 3}}, not {configs!r}')
    return {checked_name("config", name): _config_text(name, value) for name, value in configs.items()}


def _config_text(name: str, value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(_config_text(name, each) for each in value)
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float | os.PathLike):
        raise TypeError(f"the config {name} must be a string, a number, a boolean or a list of these, not {value!r}")
    return str(value)


def ensure_known(warnings: Iterable[str]) -> None:
    """Raise ValueError if a broker's configs have no effect and Kafka does not have them (``BrokerConfig.warnings``)."""
    mistakes = [warning.replace(" is ignored: ", ": ", 1) for warning in warnings if warning.partition(" ")[0] not in IGNORED]
    if mistakes:
        raise ValueError(f"configs: {'; '.join(mistakes)}")


def checked_directory(directory: object) -> str | None:
    """Return the directory of a broker. Raises TypeError."""
    if directory is not None and not isinstance(directory, str | os.PathLike):
        raise TypeError(
            f"a broker's directory must be a path, not {directory!r}; give topics and configs by name: topics=, configs="
        )
    return None if directory is None else os.fspath(directory)


def checked_within(within: float) -> float:
    """Return a time to wait, in seconds. Raises TypeError, ValueError."""
    if isinstance(within, bool) or not isinstance(within, int | float):
        raise TypeError(f"within must be a number of seconds, not {within!r}")
    if not 0 <= within <= _LONGEST_WAIT_S:
        raise ValueError(f"within must be from 0 to {_LONGEST_WAIT_S} seconds, not {within}")
    return within


def checked_count(name: str, value: object, least: int = 0) -> int:
    """Return a whole number. Raises TypeError, ValueError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if not least <= value <= _MOST:
        raise ValueError(f"{name} must be a whole number from {least} on, not {value}")
    return value


def checked_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if value not in (known := list(choices)):
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")


def ensure_by_name(method: str, example: str, wrong: tuple[object, ...]) -> None:
    """Raise TypeError if a keyword-only method was given positional arguments."""
    if wrong:
        raise TypeError(f"{method} takes its arguments by name: {example}, not {', '.join(map(repr, wrong))}")


def at_the_caller(error: BaseException) -> BaseException:
    """Return ``error``; if the kit raised it or the broker answered it, without the standard library's frames."""
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    if not (is_of_the_kit(error) or isinstance(error, KafkaError | InvalidConfig)):
        return error
    kept: Any = None
    for each in reversed(frames):
        if _is_hidden(each):
            kept = TracebackType(kept, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return error.with_traceback(kept)


def is_of_the_kit(error: BaseException) -> bool:
    """Return whether the kit itself raised the error, on purpose."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and _is_hidden(traceback)


def _is_hidden(traceback: TracebackType) -> bool:
    return bool(traceback.tb_frame.f_globals.get("__tracebackhide__"))


P = ParamSpec("P")
T = TypeVar("T")


class AwaitableBroker(Protocol):
    """A broker whose calls must be awaited. ``unawaited`` has the calls that were not awaited yet."""

    unawaited: set[CheckedCoroutine[Any]]

    def ensure_may_ask(self, what: str) -> None:
        """Raise RuntimeError if the broker cannot be asked here."""


BrokerT = TypeVar("BrokerT", bound=AwaitableBroker)


class CheckedCoroutine(Coroutine[Any, Any, T], Generic[T]):
    """The coroutine of a call. Using it as if it were the result raises an error that says to await it."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], text: str, place: str, unawaited: set[CheckedCoroutine[Any]]) -> None:
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


class CompletedCall:
    """A result for a method that has already done its work. Awaiting it does nothing."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


def must_await(
    ask: Callable[Concatenate[BrokerT, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BrokerT, P], CheckedCoroutine[T]]:
    """Make the method return a ``CheckedCoroutine``. Calling it raises RuntimeError if the broker cannot be asked here."""

    @wraps(ask)
    def ask_now(broker: BrokerT, /, *arguments: P.args, **named: P.kwargs) -> CheckedCoroutine[T]:
        text = f"broker.{ask.__name__}{'(...)' if arguments or named else ''}"
        broker.ensure_may_ask(ask.__name__)
        caller = sys._getframe(1)  # noqa: SLF001  the line that asked
        place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        return CheckedCoroutine(ask(broker, *arguments, **named), text, place, broker.unawaited)

    return ask_now


def ensure_awaited(unawaited: set[CheckedCoroutine[Any]], error: BaseException | None) -> None:
    """Raise RuntimeError for calls that a test forgot to await, unless the test fails anyway."""
    forgotten = sorted(unawaited, key=lambda each: each.place)
    for each in forgotten:
        each.close()
    if forgotten and error is None:
        lines = "; ".join(f"await {each.text} at {each.place}" for each in forgotten)
        raise RuntimeError(f"these calls were not awaited, so they did nothing: {lines}")
