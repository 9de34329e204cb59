"""Regular expressions that clients send, compiled by RE2.

Their syntax is RE2's, as in Kafka (RE2/J), without look-around and backreferences, which take exponential time.
"""

from importlib import import_module
from typing import Final, Protocol

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
    # Imported here, as few brokers ever need a pattern. The module has no types, and mypyc and mypy need different ignores for
    # that.
    re2 = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        return re2.compile(pattern, options)  # type: ignore[no-any-return]
    except (re2.error, UnicodeEncodeError) as error:
        raise InvalidPattern(str(error)) from None
