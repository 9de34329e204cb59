"""Regular expressions that clients send, compiled by RE2.

Their syntax is RE2's, as in Kafka (RE2/J), without look-around and backreferences, which take exponential time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

# RE2 compiles and matches in linear time, but the repetitions in a pattern may grow with its length. With this much memory,
# compiling one takes up to 30 ms.
_MEMORY_BYTES: Final = 1 << 20


class Pattern(Protocol):
    """A compiled pattern."""

    @property
    def programsize(self) -> int:
        """Return the worst-case cost of a match per character."""

    def fullmatch(self, text: str, /) -> object | None:
        """Return an object if all of ``text`` matches, else None. Other threads run meanwhile."""


class InvalidPattern(Exception):
    """The pattern is not a regular expression, or too large. The message gives the reason."""


def compile_pattern(pattern: str, most_letters: int) -> Pattern:
    """Compile a pattern. Raises InvalidPattern."""
    if len(pattern) > most_letters:
        raise InvalidPattern(f"it has {len(pattern)} characters")
    compiled: Pattern = _compile(pattern)
    return compiled


def compile_search(pattern: str) -> "Callable[[bytes], object | None]":
    """Return a function that finds the pattern in bytes: an object, or None. Raises InvalidPattern."""
    search: Callable[[bytes], object | None] = _compile(pattern.encode(errors="surrogateescape")).search
    return search


def _compile(pattern: str | bytes) -> Any:  # noqa: ANN401  the module has no types
    # Imported here, as few brokers ever need a pattern. The module has no types, and mypyc and mypy need different ignores for
    # that.
    re2 = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise InvalidPattern(str(error)) from None
