"""The encodings of certificates and keys: PEM and DER.

PEM is blocks of base64 between BEGIN and END, in files or in one line of a server.properties. The blocks contain DER (X.690):
each value is a tag, a length, and content. Certificates and private keys are DER values.

    Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signature }
    tbsCertificate ::= SEQUENCE { [0] version OPTIONAL, serialNumber, signature, issuer, validity, subject, key, ... }

Left out: tags of more than one octet, and BER's other length forms.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class PemBlock:
    """One PEM block, split into lines. ``label`` is the text after BEGIN. ``repr`` hides the text, which may be a key."""

    label: str
    text: str = field(repr=False)

    @property
    def is_certificate(self) -> bool:
        """Return whether the block is a certificate."""
        return self.label in ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")

    @property
    def der(self) -> bytes:
        """The decoded bytes of the block, without headers."""
        return base64.b64decode("".join(line for line in self.text.split("\n")[1:-2] if ":" not in line))

    @property
    def is_private_key(self) -> bool:
        """Return whether the block is a private key, in any format."""
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_encrypted(self) -> bool:
        """Return whether the block is a private key with a password."""
        return self.label.startswith("ENCRYPTED") or "Proc-Type: 4,ENCRYPTED" in self.text


def pem_blocks(text: str) -> list[PemBlock]:
    """Return all blocks in ``text``, ignoring anything between them. Spaces may stand for line ends."""
    return [PemBlock(label, _in_lines(label, body)) for label, body in _BLOCK.findall(text)]


def pem_block(label: str, der: bytes) -> str:
    """Encode bytes as one PEM block, split into lines."""
    return _in_lines(label, base64.b64encode(der).decode())


def _in_lines(label: str, body: str) -> str:
    if ":" not in body:
        base64 = "".join(body.split())
        body = "\n" + "".join(f"{base64[at : at + _LINE]}\n" for at in range(0, len(base64), _LINE))
    return f"-----BEGIN {label}-----{body}-----END {label}-----\n"


SEQUENCE: Final = 0x30
OCTET_STRING: Final = 0x04
OBJECT_ID: Final = 0x06
_VERSION: Final = 0xA0


def der_values(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the (tag, content, whole encoding) of each value in ``data``. IndexError or ValueError if it is truncated."""
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
            raise ValueError("a value is truncated")
        yield tag, data[start:end], data[position:end]
        position = end


def certificate_fields(certificate: bytes) -> list[tuple[int, bytes]]:
    """Return the (tag, content) of tbsCertificate's fields, from the serial number on. IndexError or ValueError."""
    [(_, whole, _), *_] = der_values(certificate)
    [(_, signed, _), *_] = der_values(whole)
    fields = [(tag, content) for tag, content, _ in der_values(signed)]
    if fields[0][0] == _VERSION:
        del fields[0]
    return fields
