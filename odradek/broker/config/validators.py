"""Checks of a config's value, beyond its type: ranges, choices, lists.

A validator is called with a typed value, and returns None or the invalid part of the value as text. ``allowed`` is the rule in
words; it completes "must be ...". A validator is never called with None, the value of an unset config.
"""

from typing import Any, Protocol


class Validator(Protocol):
    """The interface of all validators."""

    allowed: str

    def __call__(self, value: Any) -> str | None:
        """The invalid part of ``value``, or None."""


class AtLeast:
    """A number that is ``low`` or more."""

    __slots__ = ("_low", "allowed")

    def __init__(self, low: int) -> None:
        self.allowed = f"at least {low}"
        self._low = low

    def __call__(self, value: Any) -> str | None:
        """The value if it is smaller."""
        return None if value >= self._low else str(value)


class SizeOrSystems:
    """The size of a socket's buffer, which the system refuses if it is not positive; or -1 for the system's own."""

    __slots__ = ("allowed",)

    def __init__(self) -> None:
        self.allowed = "positive, or -1"

    def __call__(self, value: Any) -> str | None:
        """The value if it is neither."""
        return None if value > 0 or value == -1 else str(value)


class Between:
    """A number from ``low`` to ``high``, or ``besides``, a number outside the range with a meaning of its own."""

    __slots__ = ("_besides", "_high", "_low", "allowed")

    def __init__(self, low: int, high: int, besides: int | None = None) -> None:
        self.allowed = f"between {low} and {high}" + ("" if besides is None else f", or {besides}")
        self._low = low
        self._high = high
        self._besides = besides

    def __call__(self, value: Any) -> str | None:
        """The value if it is outside."""
        return None if self._low <= value <= self._high or value == self._besides else str(value)


class OneOf:
    """One of some values; in ``any_case``, in upper case as well."""

    __slots__ = ("_any_case", "_choices", "allowed")

    def __init__(self, *choices: str | int, any_case: bool = False) -> None:
        self.allowed = f"one of {', '.join(map(str, choices))}"
        self._choices = choices
        self._any_case = any_case

    def __call__(self, value: Any) -> str | None:
        """The value if it is another one."""
        return None if (value.lower() if self._any_case else value) in self._choices else str(value)


class Entries:
    """A list of non-empty entries, ``least`` to ``most`` of them, each one of ``choices`` if there are any."""

    __slots__ = ("_choices", "_least", "_most", "allowed")

    def __init__(self, *choices: str, least: int = 0, most: int | None = None) -> None:
        if choices:
            self.allowed = f"a list of {', '.join(choices)}"
        elif most == 1:
            self.allowed = "one entry"
        else:
            self.allowed = "a list without empty entries" if least == 0 else f"a list of at least {least}, without empty entries"
        self._choices = choices
        self._least = least
        self._most = most

    def __call__(self, value: Any) -> str | None:
        """The first invalid entry, or the whole list if its length is wrong or an entry is empty."""
        if len(value) < self._least or (self._most is not None and len(value) > self._most) or "" in value:
            return ",".join(value)
        return next((entry for entry in value if self._choices and entry not in self._choices), None)


class ThrottledReplicas:
    """Replicas under a replication quota: ``*`` for all, or a list of ``partition:broker`` (KIP-73)."""

    __slots__ = ("allowed",)

    def __init__(self) -> None:
        self.allowed = "* or a list of partition:broker"

    def __call__(self, value: Any) -> str | None:
        """The value if it is not such a list."""
        pairs = [entry.split(":") for entry in value]
        if value == ("*",) or all(len(pair) == 2 and pair[0].isdecimal() and pair[1].isdecimal() for pair in pairs):
            return None
        return ",".join(value)
