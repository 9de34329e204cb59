"""What a config may hold, beyond its type: ranges, choices, lists.

A validator is called with a typed value and answers None, or as text the part of the value that is not allowed. ``allowed``
says in words what is; it completes "must be ...". None, the value of a config that is not set, is never shown to a validator.
"""

from typing import Any, Protocol


class Validator(Protocol):
    """What every class below is."""

    allowed: str

    def __call__(self, value: Any) -> str | None:
        """Tell what is wrong with ``value``."""


class AtLeast:
    """A number that is ``low`` or more."""

    __slots__ = ("_low", "allowed")

    def __init__(self, low: int) -> None:
        self.allowed = f"at least {low}"
        self._low = low

    def __call__(self, value: Any) -> str | None:
        """Tell a smaller number."""
        return None if value >= self._low else str(value)


class Between:
    """A number from ``low`` to ``high``, or ``besides``, a number outside the range that means something of its own."""

    __slots__ = ("_besides", "_high", "_low", "allowed")

    def __init__(self, low: int, high: int, besides: int | None = None) -> None:
        self.allowed = f"between {low} and {high}" + ("" if besides is None else f", or {besides}")
        self._low = low
        self._high = high
        self._besides = besides

    def __call__(self, value: Any) -> str | None:
        """Tell a number outside."""
        return None if self._low <= value <= self._high or value == self._besides else str(value)


class OneOf:
    """One of some values."""

    __slots__ = ("_choices", "allowed")

    def __init__(self, *choices: str | int) -> None:
        self.allowed = f"one of {', '.join(map(str, choices))}"
        self._choices = choices

    def __call__(self, value: Any) -> str | None:
        """Tell any other value."""
        return None if value in self._choices else str(value)


class Entries:
    """A list of entries that are not empty, ``least`` to ``most`` of them, and among ``choices`` where there are any."""

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
        """Tell an entry that may not be there, or the whole list if it is too long or too short or has a hole."""
        if len(value) < self._least or (self._most is not None and len(value) > self._most) or "" in value:
            return ",".join(value)
        return next((entry for entry in value if self._choices and entry not in self._choices), None)


class ThrottledReplicas:
    """Replicas under a replication quota: ``*`` for all, or a list of ``partition:broker`` (KIP-73)."""

    __slots__ = ("allowed",)

    def __init__(self) -> None:
        self.allowed = "* or a list of partition:broker"

    def __call__(self, value: Any) -> str | None:
        """Tell a list that is not one of replicas."""
        pairs = [entry.split(":") for entry in value]
        if value == ("*",) or all(len(pair) == 2 and pair[0].isdecimal() and pair[1].isdecimal() for pair in pairs):
            return None
        return ",".join(value)
