"""JAAS lines, as Kafka's ``sasl.jaas.config`` has them.

    LOGIN_MODULE FLAG option=value option="value with spaces" ... ;

One login module a line. Words are letters, digits, ``-_$.`` and what lies beyond ASCII; all else stands in quotes, where a
backslash is Java's. Comments are those of Java. Kafka's class is JaasConfig.
"""

import re
from typing import Final, NamedTuple

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""
      (?P<skipped> \s+ | //[^\r\n]* | /\*.*?\*/ )
    | (?P<word>    [\w\-$.\u00a0-\U0010ffff]+ )
    | "(?P<double> (?:\\.|[^"\\\r\n])* )"
    | '(?P<single> (?:\\.|[^'\\\r\n])* )'
    | (?P<sign>    [=;] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """A line that is none. The text says what is wrong with it, and nothing that stands in it."""


class LoginModule(NamedTuple):
    """The ``name`` of the module's class, and its ``options``, some of them secrets."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name!r}, {len(self.options)} options)"


def parse_jaas(text: str) -> LoginModule:
    """The one login module of a line. Raises JaasError."""
    tokens = _tokens(text)
    if not tokens:
        raise JaasError("it is empty")
    if tokens[0] in ("=", ";"):
        raise JaasError("it does not begin with the class of a login module")
    if len(tokens) < 2 or tokens[1][1:].lower() not in _FLAGS:
        raise JaasError(f"the login module is not followed by one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    at = 2
    while at < len(tokens) and tokens[at] != ";":
        key, equals, value = (*tokens[at : at + 3], "", "", "")[:3]
        if key == "=" or equals != "=" or value in ("", "=", ";"):
            raise JaasError(f"option {len(options) + 1} is not of the form name=value")
        options[key[1:]] = value[1:]
        at += 3
    if at == len(tokens):
        raise JaasError("it does not end with a semicolon")
    if at + 1 < len(tokens):
        raise JaasError("it has more than one login module")
    return LoginModule(tokens[0][1:], options)


def _tokens(text: str) -> list[str]:
    """Words, each behind a mark that tells it from the signs = and ; which stand alone."""
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise JaasError(f"character {at + 1} may stand in quotes only, and quotes have to end on their line")
        at = match.end()
        kind = match.lastgroup
        if kind == "sign":
            tokens.append(match["sign"])
        elif kind == "word":
            tokens.append("w" + match["word"])
        elif kind != "skipped":
            tokens.append("w" + _ESCAPE.sub(_unescaped, match["double"] or match["single"] or ""))
    return tokens


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code.isdigit() and code < "8" else _ESCAPED.get(code, code)
