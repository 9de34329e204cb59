r"""``ssl.principal.mapping.rules``: map a certificate's distinguished name to a principal's name (KIP-371).

    RULE:pattern/replacement/[LU]    the first rule whose pattern matches the whole name applies. ``$1`` is its first group;
                                     L and U make the result lower or upper case. ``\/`` is a slash.
    DEFAULT                          the name unchanged

Patterns are Python's regular expressions. They support all of Java's syntax that rules are known to use, including named groups,
but not ``\p{...}``.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

_ESCAPE_OR_OTHER: Final = r"((?:\\.|[^\\/])*)"
_RULE: Final = re.compile(rf"RULE:{_ESCAPE_OR_OTHER}/{_ESCAPE_OR_OTHER}/([LU]?)")
_NAMED_GROUP: Final = re.compile(r"\(\?<(?![=!])")
_REFERENCE: Final = re.compile(r"\\(.)|\$([0-9]+)|\$\{(\w+)\}", re.DOTALL)
_Rule = Callable[[str], str | None]


class NoMatchingRule(Exception):
    """No rule matches the name."""


class PrincipalMapper:
    """The rules of one listener. ValueError for unreadable rules."""

    def __init__(self, rules: str) -> None:
        self._rules: list[_Rule] = [_as_it_is if parts is None else _compiled(*parts) for parts in _parsed(rules)]

    def name(self, distinguished_name: str) -> str:
        """Return the name by the first rule that matches. Raises NoMatchingRule."""
        for rule in self._rules:
            name = rule(distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRule(distinguished_name)


def _parsed(text: str) -> Iterator[tuple[str, str, str] | None]:
    """Yield the (pattern, replacement, case) of each rule, None for DEFAULT. Empty rules are skipped."""
    position = 0
    while position < len(text):
        if text[position].isspace() or text[position] == ",":
            position += 1
            continue
        rule = _RULE.match(text, position)
        if rule is not None:
            yield rule[1], rule[2], rule[3]
            position = rule.end()
        elif text.startswith("DEFAULT", position):
            yield None
            position += len("DEFAULT")
        else:
            raise ValueError(f"expected the start of a rule at {text[position:]!r}")
        if text[position:].lstrip()[:1] not in ("", ","):
            raise ValueError(f"expected a comma or the end at {text[position:]!r}")


def _as_it_is(name: str) -> str:
    return name


def _compiled(pattern: str, replacement: str, case: str) -> _Rule:
    try:
        compiled = re.compile(_NAMED_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    for reference in _REFERENCE.finditer(replacement):
        is_missing = reference[2] is not None and not compiled.groups and int(reference[2]) > 0
        if is_missing or (reference[3] is not None and reference[3] not in compiled.groupindex):
            raise ValueError(f"{pattern!r} has no group for {reference[0]}")
    return partial(_applied, compiled, replacement, case)


def _applied(pattern: re.Pattern[str], replacement: str, case: str, name: str) -> str | None:
    if pattern.fullmatch(name) is None:
        return None
    result = pattern.sub(lambda match: _REFERENCE.sub(partial(_referred, match), replacement), name)
    return result.lower() if case == "L" else result.upper() if case == "U" else result


def _referred(match: re.Match[str], reference: re.Match[str]) -> str:
    """Return the text for a reference in a replacement.

    A number refers to the group given by its longest prefix that is a group's number. Without such a prefix, it stays as text.
    """
    escaped, digits, group = reference.groups()
    if escaped is not None:
        return str(escaped)
    if group is not None:
        return match[group] or ""
    for size in range(len(digits), 0, -1):
        if int(digits[:size]) <= len(match.groups()):
            return (match[int(digits[:size])] or "") + digits[size:]
    return reference[0]
