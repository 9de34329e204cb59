"""A certificate's subject alternative names (RFC 5280, 4.2.1.6): the hosts that it is for.

    extensions ::= [3] SEQUENCE of SEQUENCE { extnID, critical BOOLEAN OPTIONAL, OCTET STRING }
    SubjectAltName ::= SEQUENCE of GeneralName

Each form of a GeneralName has a tag of its own.
"""

from ipaddress import ip_address
from typing import Final, NamedTuple

from odradek.broker.security.der import certificate_fields, der_values

_EXTENSIONS: Final = 0xA3
# 2.5.29.17
_SUBJECT_ALT_NAME: Final = bytes.fromhex("551d11")
_KINDS: Final = {0x81: "email", 0x82: "DNS", 0x86: "URI"}
_IP_ADDRESS: Final = 0x87


class AlternativeName(NamedTuple):
    """One name, as it is encoded."""

    tag: int
    content: bytes

    def __str__(self) -> str:
        if self.tag in _KINDS:
            return f"{_KINDS[self.tag]}:{self.content.decode('ascii', 'replace')}"
        if self.tag == _IP_ADDRESS and len(self.content) in (4, 16):
            return f"IP:{ip_address(self.content)}"
        return f"#{self.tag:02x}{self.content.hex()}"


def alternative_names(certificate: bytes) -> frozenset[AlternativeName]:
    """The names in a DER certificate. ValueError for other bytes."""
    try:
        for tag, content in certificate_fields(certificate):
            if tag == _EXTENSIONS:
                return _names(content)
    except IndexError as error:
        raise ValueError("this is no certificate") from error
    return frozenset()


def _names(extensions: bytes) -> frozenset[AlternativeName]:
    [(_, content, _)] = der_values(extensions)
    for _, extension, _ in der_values(content):
        [(_, object_id, _), *_, (_, value, _)] = der_values(extension)
        if object_id == _SUBJECT_ALT_NAME:
            [(_, names, _)] = der_values(value)
            return frozenset(AlternativeName(tag, name) for tag, name, _ in der_values(names))
    return frozenset()
