"""Parser of JAAS lines, the values of Kafka's ``sasl.jaas.config``.

    LOGIN_MODULE FLAG option=value option="value with spaces" ... ;

One login module per line. A bare word has letters, digits, ``-_$.`` and non-ASCII characters; anything else needs quotes, with
Java's backslash escapes inside. Comments are Java's. Kafka's class is JaasConfig.
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
    """A line that is no JAAS line. The text says why, and quotes nothing of the line, which may hold secrets."""


class LoginModule(NamedTuple):
    """The class ``name`` of a login module, and its ``options``, some of them secrets."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name!r}, {len(self.options)} options)"


def parse_jaas(text: str) -> LoginModule:
    """Return the login module of a line. Raises JaasError."""
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
    """Split a line into tokens: ``=``, ``;``, and words, each prefixed with ``w`` to tell it from these signs."""
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise JaasError(f"character {at + 1} needs quotes, and quotes must end on their line")
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
