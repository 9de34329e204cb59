r"""Properties files by the rules of java.util.Properties: server.properties and those of Kafka's clients.

A line is a key and a value, separated by ``=``, ``:`` or white space, each surrounded by optional white space. ``#`` and ``!``
at the start of a line begin a comment. A backslash at the end of a line continues it with the next line, less that line's
indent. A backslash before ``t``, ``n``, ``r``, ``f`` and ``uXXXX`` means what it means in Java; before any other character it
is dropped.
"""

import re
from collections.abc import Iterator


class MalformedEscape(ValueError):
    r"""A ``\u`` without four digits. The text is the value that contains it."""


_LINE_END = r"\r\n|\r|\n"
_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = r"\\(?:u([0-9A-Fa-f]{4})|(.))"
_ESCAPED = {char: f"\\{letter}" for letter, char in _ESCAPES.items()} | {"\\": "\\\\"}
_KEY = r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*"


def parse_properties(text: str) -> dict[str, str]:
    r"""Return the keys and values in ``text``; the last of equal keys wins. Raises MalformedEscape."""
    properties = {}
    for line in _logical_lines(text):
        key = re.match(_KEY, line)
        if key is not None:  # always true: a key may be empty
            properties[_unescape(key[1])] = _unescape(line[key.end() :])
    return properties


def property_line(key: str, value: str) -> str:
    """Return the line that sets ``key`` to ``value``, in ASCII."""
    return f"{_escape(key, ' =:#!')}={_escape(value, '')}"


def _escape(text: str, specials: str) -> str:
    found = "".join(f"\\{char}" if char in specials else _ESCAPED.get(char) or _ascii(char) for char in text)
    return f"\\{found}" if found.startswith(" ") else found


def _ascii(char: str) -> str:
    units = char.encode("utf-16-be").hex()
    return char if " " <= char <= "~" else "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for natural in re.split(_LINE_END, text):
        line = natural.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        if pending + line:
            yield pending + line
        pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    # Java's characters have 16 bits: a pair of escapes makes one of ours.
    return re.sub(_ESCAPE, _unescaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is not None:
        return chr(int(match[1], 16))
    if match[2] == "u":
        raise MalformedEscape(match.string)
    return _ESCAPES.get(match[2], match[2])
