"""Regular expressions that clients send, compiled by RE2.

Their syntax is RE2's, as in Kafka (RE2/J): without look-around and references to groups, which take exponential time.
"""

from importlib import import_module
from typing import Final, Protocol

# RE2 compiles and matches in linear time, but what a pattern may repeat grows with its length: with this much memory, compiling
# one takes up to 30 ms.
_MEMORY_BYTES: Final = 1 << 20


class Pattern(Protocol):
    """A compiled pattern."""

    @property
    def programsize(self) -> int:
        """The cost of a match for each letter, at worst."""

    def fullmatch(self, text: str, /) -> object | None:
        """Something if all of ``text`` matches, else None. Other threads run meanwhile."""


class InvalidPattern(Exception):
    """It is no regular expression, or too large. The message says why."""


def compile_pattern(pattern: str, most_letters: int) -> Pattern:
    """The compiled pattern. Raises InvalidPattern."""
    if len(pattern) > most_letters:
        raise InvalidPattern(f"it has {len(pattern)} characters")
    # Few brokers are ever asked for a pattern. It has no types, which mypyc would have to be told of in other words than mypy.
    re2 = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        return re2.compile(pattern, options)  # type: ignore[no-any-return]
    except (re2.error, UnicodeEncodeError) as error:
        raise InvalidPattern(str(error)) from None
