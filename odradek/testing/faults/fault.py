"""An active rule: it matches requests, counts its firings, and is the test's handle."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from odradek.common.logging import log
from odradek.testing.faults.vocabulary import ACTIONS, OF_FILES, BadRule
from odradek.testing.misuse import CompletedCall, checked_count, checked_within

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from types import TracebackType

    from odradek.testing.faults.request import Request

__tracebackhide__ = True

# The fields that a predicate may read.
REQUEST_FIELDS: Final = ("api_key", "client_id", "groups", "transactional_ids", "topics", "partitions", "message")
DEFAULT_WITHIN_S: Final = 10.0


class NotFired(AssertionError):
    """A rule has not fired as often as awaited; the message says how often."""


class Fired(NamedTuple):
    """One firing: the rule in words, and the request or file. ``action`` is None if the rule only observes."""

    rule: str
    action: str | None
    api: str
    client_id: str | None
    group: str | None
    transactional_id: str | None
    topics: tuple[str, ...]


class Fault:
    """The handle of a rule. Call its methods on the broker's loop; any thread may read ``hits``."""

    def __init__(self, words: Mapping[str, Any], remove: Callable[[Fault], object]) -> None:
        self.words = dict(words)
        self.action = next((key for key in ACTIONS if key in words), None)
        self.hits = 0
        # The subject of the rule: "connections", "files" or "requests".
        self.subject = "requests"
        if "connections" in words or "refuse" in words:
            self.subject = "connections"
        elif any(key in words for key in OF_FILES):
            self.subject = "files"
        self.fired: list[Fired] = []
        self._remove = remove
        self._fires = asyncio.Event()
        # The number of subjects it has matched, fired or not.
        self._meant = 0
        self._failure: Exception | None = None
        self._random = Random(words.get("seed")) if "probability" in words else None  # noqa: S311  chance, no secret

    def __str__(self) -> str:
        return ", ".join(f"{key}={_shown(value)}" for key, value in self.words.items()) or "everything"

    @property
    def value(self) -> Any:
        """The argument of the action; None without an action."""
        return None if self.action is None else self.words[self.action]

    async def wait(self, n: int = 1, *, within: float = DEFAULT_WITHIN_S) -> None:
        """Wait until the rule has fired ``n`` times. Raises NotFired, an AssertionError, after ``within`` seconds; BadRule."""
        checked_count("the number of times", n)
        checked_within(within)
        try:
            async with asyncio.timeout(within):
                while self.hits < n:
                    self.ensure_sound()
                    self._fires.clear()
                    await self._fires.wait()
        except TimeoutError:
            raise NotFired(f"waited {within:g} s for {n} of the rule {self}; it fired {self.hits} times") from None

    def remove(self) -> CompletedCall:
        """Remove the rule. Requests that it holds go on."""
        self._remove(self)
        return CompletedCall()

    def __await__(self) -> Generator[Any, Any, Self]:
        """Return the rule itself: it is in force once it is added, but may be awaited like other calls."""
        yield from ()
        return self

    def means(self, topic: str, partition: int | None) -> bool:
        """Return whether the rule matches a partition of a request. A topic without a partition matches if the topic does."""
        words = self.words
        return words.get("topic", topic) == topic and (partition is None or words.get("partition", partition) == partition)

    def fires_at(self, request: Request) -> bool:
        """Return whether the rule fires at this request. A match is counted."""
        return self._names(request) and self.draws()

    def note(self, fired: Fired) -> None:
        """Record a firing."""
        self.hits += 1
        self._fires.set()
        self.fired.append(fired)

    def _names(self, request: Request) -> bool:
        words = self.words
        return (
            request.api_key in words.get("api", (request.api_key,))
            and words.get("client_id", request.client_id) == request.client_id
            and ("group" not in words or words["group"] in request.groups)
            and ("transactional_id" not in words or words["transactional_id"] in request.transactional_ids)
            and ("topic" not in words or any(self.means(*each) for each in request.partitions))
            and ("predicate" not in words or self._passes(request))
        )

    def _passes(self, request: Request) -> bool:
        if self._failure is not None:
            return False
        try:
            return bool(self.words["predicate"](request))
        except Exception as error:  # noqa: BLE001  the test's own error: the test is told, and no client pays for it
            self._failure = error
            self._fires.set()
            log.error("a rule's predicate raised an error: the rule is disabled", error, rule=str(self))
            return False

    def ensure_sound(self) -> None:
        """Raise BadRule if the rule's predicate has raised an error."""
        if self._failure is not None:
            raise BadRule(f"predicate: it raised {self._failure!r}; a request has {', '.join(REQUEST_FIELDS)}") from self._failure

    def draws(self) -> bool:
        """Count a match, and return whether the rule fires at it."""
        words = self.words
        self._meant += 1
        if "nth" in words:
            return bool(self._meant == words["nth"])
        if self._meant <= words.get("after", 0) or self.hits >= words.get("times", self.hits + 1):
            return False
        return self._random is None or self._random.random() < words["probability"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.remove()
        if error is None:
            self.ensure_sound()


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return "/".join(map(_shown, value))
    name: str | None = getattr(value, "name", None)
    return repr(value) if name is None else name
