r"""The names in a certificate: its subject as Java writes it (RFC 2253), the principal in Kafka's ACLs, and its hosts.

A certificate is DER. Its subject is a sequence of relative names, the least specific first. Each relative name is a set of pairs:
an attribute type and a value. Java writes them from the last to the first.

The hosts are the subject alternative names (RFC 5280, 4.2.1.6). Each kind of GeneralName has its own tag.

    extensions ::= [3] SEQUENCE of SEQUENCE { extnID, critical BOOLEAN OPTIONAL, OCTET STRING }
    SubjectAltName ::= SEQUENCE of GeneralName

``ssl.principal.mapping.rules`` map the subject to a principal's name (KIP-371):

    RULE:pattern/replacement/[LU]    the first rule whose pattern matches the whole name applies. ``$1`` is its first group;
                                     L and U make the result lower or upper case. ``\/`` is a slash.
    DEFAULT                          the name unchanged

Patterns are Python's regular expressions. They support all of Java's syntax that rules are known to use, including named groups,
but not ``\p{...}``.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import ip_address
from typing import Final, NamedTuple

from odradek.broker.security.tls.encodings import OBJECT_ID, SEQUENCE, certificate_fields, der_values

# The attribute types with a keyword in RFC 2253. Other types are written as numbers, with the value in hexadecimal DER.
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# The tags of strings: UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString. Java reads them all as UTF-8.
_STRINGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
# UTF8String and PrintableString: case and spaces are ignored when subjects are compared.
_FOLDED: Final = frozenset({0x0C, 0x13})
_SPECIALS: Final = frozenset(',=+<>#;"\\')
_BLANKS: Final = " \r"


def subject_of(certificate: bytes) -> str:
    """Return a DER certificate's subject: ``CN=orders,OU=Shop,O=Example``; empty if it has none. ValueError for other bytes."""
    try:
        relative_names = [
            "+".join(_attribute(pair) for _, pair, _ in der_values(relative_name))
            for _, relative_name, _ in der_values(_subject(certificate))
        ]
    except IndexError as error:
        raise ValueError("not a certificate") from error
    return ",".join(reversed(relative_names))


def canonical_subject(certificate: bytes) -> tuple[frozenset[tuple[str, str]], ...]:
    """Return the subject in a form to compare: as in Java, case and spaces are ignored. ValueError for other bytes."""
    try:
        return tuple(
            frozenset(_canonical(pair) for _, pair, _ in der_values(relative_name))
            for _, relative_name, _ in der_values(_subject(certificate))
        )
    except IndexError as error:
        raise ValueError("not a certificate") from error


def _subject(certificate: bytes) -> bytes:
    """Return the encoded relative names. IndexError or ValueError for other bytes."""
    tag, subject = certificate_fields(certificate)[4]
    if tag != SEQUENCE:
        raise ValueError("not a certificate")
    return subject


def _attribute(pair: bytes) -> str:
    number, tag, content, encoded = _parts(pair)
    if number not in _KEYWORDS or tag not in _STRINGS:
        return f"{_KEYWORDS.get(number, number)}=#{encoded.hex()}"
    return f"{_KEYWORDS[number]}={_escaped(content.decode(errors='replace'))}"


def _canonical(pair: bytes) -> tuple[str, str]:
    number, tag, content, encoded = _parts(pair)
    if number not in _KEYWORDS or tag not in _FOLDED:
        return number, f"#{encoded.hex()}"
    return number, " ".join(unicodedata.normalize("NFKD", content.decode(errors="replace")).lower().split())


def _parts(pair: bytes) -> tuple[str, int, bytes, bytes]:
    """Return the number of an attribute's type, and its value's tag, content and whole encoding."""
    (kind, object_id, _), (tag, content, encoded) = der_values(pair)
    if kind != OBJECT_ID:
        raise ValueError("an attribute has no type")
    return _dotted(object_id), tag, content, encoded


def _dotted(object_id: bytes) -> str:
    arcs: list[int] = []
    arc = 0
    for octet in object_id:
        arc = arc << 7 | octet & 0x7F
        if not octet & 0x80:
            arcs.append(arc)
            arc = 0
    # The first two arcs share a number.
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))


def _escaped(text: str) -> str:
    begins = len(text) - len(text.lstrip(_BLANKS))
    ends = len(text.rstrip(_BLANKS))
    return "".join(
        "\\00" if char == "\0" else f"\\{char}" if char in _SPECIALS or not begins <= place < ends else char
        for place, char in enumerate(text)
    )


_EXTENSIONS: Final = 0xA3
# 2.5.29.17
_SUBJECT_ALT_NAME: Final = bytes.fromhex("551d11")
_KINDS: Final = {0x81: "email", 0x82: "DNS", 0x86: "URI"}
_IP_ADDRESS: Final = 0x87


class AlternativeName(NamedTuple):
    """One subject alternative name, as encoded."""

    tag: int
    content: bytes

    def __str__(self) -> str:
        if self.tag in _KINDS:
            return f"{_KINDS[self.tag]}:{self.content.decode('ascii', 'replace')}"
        if self.tag == _IP_ADDRESS and len(self.content) in (4, 16):
            return f"IP:{ip_address(self.content)}"
        return f"#{self.tag:02x}{self.content.hex()}"


def alternative_names(certificate: bytes) -> frozenset[AlternativeName]:
    """Return the subject alternative names of a DER certificate. ValueError for other bytes."""
    try:
        for tag, content in certificate_fields(certificate):
            if tag == _EXTENSIONS:
                return _names(content)
    except IndexError as error:
        raise ValueError("not a certificate") from error
    return frozenset()


def _names(extensions: bytes) -> frozenset[AlternativeName]:
    [(_, content, _)] = der_values(extensions)
    for _, extension, _ in der_values(content):
        [(_, object_id, _), *_, (_, value, _)] = der_values(extension)
        if object_id == _SUBJECT_ALT_NAME:
            [(_, names, _)] = der_values(value)
            return frozenset(AlternativeName(tag, name) for tag, name, _ in der_values(names))
    return frozenset()


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
        self._rules: list[_Rule] = [_identity if parts is None else _compiled(*parts) for parts in _parsed(rules)]

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


def _identity(name: str) -> str:
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
