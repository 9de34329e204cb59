"""The encodings of certificates, keys and key stores: PEM, DER, and Java's JKS.

PEM is blocks of base64 between BEGIN and END, in files or in one line of a server.properties. The blocks contain DER (X.690):
each value is a tag, a length, and content. Certificates and private keys are DER values.

    Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signature }
    tbsCertificate ::= SEQUENCE { [0] version OPTIONAL, serialNumber, signature, issuer, validity, subject, key, ... }

JKS is Java's own key store format: private keys with their certificate chains, and trusted certificates.

    store       magic (FEEDFEED), version (1 or 2), number of entries: int32 each; entries; digest (20 bytes)
    entry       kind (int32: 1 a private key, 2 a trusted certificate), alias (string), date (int64), then
      1         protected key (int32 length, bytes), number of certificates (int32), certificates
      2         a certificate
    certificate version 2: type (string); int32 length, DER
    string      uint16 length, Java's UTF-8

The digest is SHA-1 over the password, a fixed phrase and all bytes before the digest. Without a password it is not checked. A
protected key is PKCS#8's EncryptedPrivateKeyInfo with an algorithm of Sun's: a salt, the key XORed with a stream of SHA-1
digests, and SHA-1 over password and key. Passwords are encoded in UTF-16.

Left out: DER tags of more than one octet, and BER's other length forms; JCEKS, which can hold secret keys, and aliases and dates
of JKS, which are unused. As in Java, bytes after the digest are ignored.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

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


MAGIC: Final = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC: Final = b"\xce\xce\xce\xce"
_PRIVATE_KEY: Final = 1
_TRUSTED_CERTIFICATE: Final = 2
_X509: Final = (b"X.509", b"X509")
_PHRASE: Final = b"Mighty Aphrodite"
_DIGEST_BYTES: Final = 20
# 1.3.6.1.4.1.42.2.17.1.1
_SUNS_PROTECTION: Final = bytes.fromhex("2b060104012a02110101")


class JavaKeyStoreError(ValueError):
    """The bytes are no readable key store."""


class WrongPassword(Exception):
    """The password of the store or the key is wrong, or its bytes have been altered."""


@dataclass(frozen=True, slots=True)
class PrivateKeyEntry:
    """A certificate chain in DER, the key's own certificate first, and the protected key. ``repr`` hides the key."""

    chain: tuple[bytes, ...]
    protected_key: bytes = field(repr=False)

    def key(self, password: str) -> bytes:
        """Return the private key: PKCS#8 in DER. Raises WrongPassword, and JavaKeyStoreError for another kind of protection."""
        protected = _protected(self.protected_key)
        secret = _password_bytes(password)
        salt, mixed = protected[:_DIGEST_BYTES], protected[_DIGEST_BYTES:-_DIGEST_BYTES]
        plain = bytes(octet ^ mask for octet, mask in zip(mixed, _key_stream(secret, salt, len(mixed)), strict=True))
        if _sha1(secret + plain) != protected[-_DIGEST_BYTES:]:
            raise WrongPassword
        return plain


@dataclass(frozen=True, slots=True)
class JavaKeyStore:
    """The content of a store, in the order of the file."""

    private_keys: tuple[PrivateKeyEntry, ...]
    trusted_certificates: tuple[bytes, ...]


def read_java_key_store(data: bytes, password: str | None) -> JavaKeyStore:
    """Read a store; without a password its integrity is not checked. Raises JavaKeyStoreError and WrongPassword."""
    reader = _Reader(data)
    if reader.take(len(MAGIC)) != MAGIC:
        raise JavaKeyStoreError("it does not begin with the magic number of a JKS")
    version = reader.number()
    if version not in (1, 2):
        raise JavaKeyStoreError(f"its version is {version}, only 1 and 2 are supported")
    keys: list[PrivateKeyEntry] = []
    trusted: list[bytes] = []
    for _ in range(reader.number()):
        kind = reader.number()
        reader.string()
        reader.take(8)
        if kind == _PRIVATE_KEY:
            protected = reader.block()
            keys.append(PrivateKeyEntry(tuple(reader.certificate(version) for _ in range(reader.number())), protected))
        elif kind == _TRUSTED_CERTIFICATE:
            trusted.append(reader.certificate(version))
        else:
            raise JavaKeyStoreError(f"it has an entry of kind {kind}, neither a private key nor a certificate")
    if password is not None:
        content = data[: reader.position]
        if reader.take(_DIGEST_BYTES) != _sha1(_password_bytes(password) + _PHRASE + content):
            raise WrongPassword
    return JavaKeyStore(tuple(keys), tuple(trusted))


class _Reader:
    """A reader that takes values from the front of ``data``. Raises JavaKeyStoreError at its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def take(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        if self.position > len(self._data):
            raise JavaKeyStoreError("it is truncated or altered")
        return self._data[start : self.position]

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        return self.take(int.from_bytes(self.take(2), "big"))

    def block(self) -> bytes:
        return self.take(self.number())

    def certificate(self, version: int) -> bytes:
        kind = self.string() if version > 1 else _X509[0]
        if kind not in _X509:
            raise JavaKeyStoreError("it has a certificate that is not X.509")
        return self.block()


def _protected(info: bytes) -> bytes:
    """Return the octets of an EncryptedPrivateKeyInfo ::= SEQUENCE { SEQUENCE { algorithm, ... }, OCTET STRING }."""
    try:
        [(outer, content, _)] = der_values(info)
        [(inner, algorithm, _), (kind, octets, _)] = der_values(content)
        [(_, number, object_id), *_] = der_values(algorithm)
    except (ValueError, IndexError) as error:
        raise JavaKeyStoreError("its private key is altered") from error
    if (outer, inner, kind, object_id[0]) != (SEQUENCE, SEQUENCE, OCTET_STRING, OBJECT_ID) or len(octets) < 2 * _DIGEST_BYTES:
        raise JavaKeyStoreError("its private key is altered")
    if number != _SUNS_PROTECTION:
        raise JavaKeyStoreError("its private key is not encrypted with the algorithm of JKS")
    return octets


def _key_stream(secret: bytes, salt: bytes, size: int) -> bytes:
    stream = b""
    digest = salt
    while len(stream) < size:
        digest = _sha1(secret + digest)
        stream += digest
    return stream[:size]


def _password_bytes(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()
