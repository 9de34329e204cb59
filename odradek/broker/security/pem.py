"""PEM: blocks of base64 between BEGIN and END, as files have them, and as one line of a server.properties does."""

import base64
import re
from dataclasses import dataclass, field
from typing import Final

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class PemBlock:
    """One block, in lines. ``label`` is what follows BEGIN. The text, which may be a key, is not told."""

    label: str
    text: str = field(repr=False)

    @property
    def is_certificate(self) -> bool:
        """Whether it is a certificate."""
        return self.label in ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")

    @property
    def der(self) -> bytes:
        """What is between its first line and its last, without headers."""
        return base64.b64decode("".join(line for line in self.text.split("\n")[1:-2] if ":" not in line))

    @property
    def is_private_key(self) -> bool:
        """Whether it is a private key, in any of the forms that there are."""
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_encrypted(self) -> bool:
        """Whether it is a private key that has a password."""
        return self.label.startswith("ENCRYPTED") or "Proc-Type: 4,ENCRYPTED" in self.text


def pem_blocks(text: str) -> list[PemBlock]:
    """All blocks in ``text``, whatever is between them. Spaces may stand for ends of lines."""
    return [PemBlock(label, _in_lines(label, body)) for label, body in _BLOCK.findall(text)]


def pem_block(label: str, der: bytes) -> str:
    """One block of these bytes, in lines."""
    return _in_lines(label, base64.b64encode(der).decode())


def _in_lines(label: str, body: str) -> str:
    if ":" not in body:
        base64 = "".join(body.split())
        body = "\n" + "".join(f"{base64[at : at + _LINE]}\n" for at in range(0, len(base64), _LINE))
    return f"-----BEGIN {label}-----{body}-----END {label}-----\n"
