"""DER (X.690): each value is a tag, a length, and content. Certificates and private keys are written so.

    Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signature }
    tbsCertificate ::= SEQUENCE { [0] version OPTIONAL, serialNumber, signature, issuer, validity, subject, key, ... }

Left out: tags of more than one octet, and lengths that only BER has.
"""

from collections.abc import Iterator
from typing import Final

SEQUENCE: Final = 0x30
OCTET_STRING: Final = 0x04
OBJECT_ID: Final = 0x06
_VERSION: Final = 0xA0


def der_values(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The (tag, content, whole encoding) of each value in ``data``. IndexError or ValueError where it is cut."""
    position = 0
    while position < len(data):
        tag = data[position]
        size = data[position + 1]
        start = position + 2
        if size & 0x80:
            start += size & 0x7F
            size = int.from_bytes(data[position + 2 : start], "big")
        end = start + size
        if end > len(data):
            raise ValueError("a value is cut")
        yield tag, data[start:end], data[position:end]
        position = end


def certificate_fields(certificate: bytes) -> list[tuple[int, bytes]]:
    """The (tag, content) of the fields of a certificate's tbsCertificate, from the serial number on. IndexError or ValueError."""
    [(_, whole, _), *_] = der_values(certificate)
    [(_, signed, _), *_] = der_values(whole)
    fields = [(tag, content) for tag, content, _ in der_values(signed)]
    if fields[0][0] == _VERSION:
        del fields[0]
    return fields
