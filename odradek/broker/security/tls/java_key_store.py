"""Reader of JKS, Java's own key store format: private keys with their certificate chains, and trusted certificates.

    store       magic (FEEDFEED), version (1 or 2), number of entries: int32 each; entries; digest (20 bytes)
    entry       kind (int32: 1 a private key, 2 a trusted certificate), alias (string), date (int64), then
      1         protected key (int32 length, bytes), number of certificates (int32), certificates
      2         a certificate
    certificate version 2: type (string); int32 length, DER
    string      uint16 length, Java's UTF-8

The digest is SHA-1 over the password, a fixed phrase and all bytes before the digest. Without a password it is not checked. A
protected key is PKCS#8's EncryptedPrivateKeyInfo with an algorithm of Sun's: a salt, the key XORed with a stream of SHA-1
digests, and SHA-1 over password and key. Passwords are encoded in UTF-16.

Left out: JCEKS, which can hold secret keys, and aliases and dates, which are unused. As in Java, bytes after the digest are
ignored.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

from odradek.broker.security.tls.pem_and_der import OBJECT_ID, OCTET_STRING, SEQUENCE, der_values

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
