"""Writes Java's own key stores, JKS, so that tests of them need no Java; written from the layout, not with the reader's code."""

import hashlib
import os
import struct
from typing import NamedTuple

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from odradek.testing.certificates import Certificate

MAGIC = 0xFEEDFEED
DATE_MS = 1_700_000_000_000
# AlgorithmIdentifier of 1.3.6.1.4.1.42.2.17.1.1, with NULL for its parameters.
PROTECTION = bytes.fromhex("300e060a2b060104012a02110101") + b"\x05\x00"


class Trusted(NamedTuple):
    """An entry with a certificate alone, in DER."""

    certificate: bytes
    alias: str = "trusted"


class Key(NamedTuple):
    """An entry with a private key, PKCS#8 in DER, and its chain."""

    key: bytes
    chain: tuple[bytes, ...]
    password: str
    alias: str = "own"


def key_entry(made: Certificate, password: str, alias: str = "own") -> Key:
    """The entry of ``made``, with the authority's certificate in the chain."""
    chain = [made.certificate, *([] if made.authority is None else [made.authority])]
    key = made.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return Key(key, tuple(each.public_bytes(Encoding.DER) for each in chain), password, alias)


def trusted_entry(made: Certificate, alias: str = "trusted") -> Trusted:
    """The entry of a certificate alone."""
    return Trusted(made.certificate.public_bytes(Encoding.DER), alias)


def java_key_store(
    entries: "list[Key | Trusted]", password: str, version: int = 2, magic: int = MAGIC, algorithm: bytes = PROTECTION
) -> bytes:
    """The file's bytes."""
    body = struct.pack(">III", magic, version, len(entries)) + b"".join(entry_bytes(each, version, algorithm) for each in entries)
    return body + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def entry_bytes(entry: Key | Trusted, version: int, algorithm: bytes = PROTECTION) -> bytes:
    """One entry; kind 1 is a key, kind 2 a certificate."""
    head = struct.pack(">I", 1 if isinstance(entry, Key) else 2) + string_bytes(entry.alias) + struct.pack(">Q", DATE_MS)
    if isinstance(entry, Trusted):
        return head + certificate_bytes(entry.certificate, version)
    protected = sequence(algorithm + value(0x04, protect(entry.key, entry.password)))
    chain = b"".join(certificate_bytes(each, version) for each in entry.chain)
    return head + struct.pack(">I", len(protected)) + protected + struct.pack(">I", len(entry.chain)) + chain


def certificate_bytes(certificate: bytes, version: int) -> bytes:
    """A certificate; only version 2 has its type."""
    return (string_bytes("X.509") if version == 2 else b"") + struct.pack(">I", len(certificate)) + certificate


def protect(key: bytes, password: str) -> bytes:
    """Salt, key under the stream, digest of the key."""
    secret, salt = password.encode("utf-16-be"), os.urandom(20)
    digest, mixed = salt, bytearray()
    for at in range(0, len(key), 20):
        digest = hashlib.sha1(secret + digest).digest()
        mixed += bytes(octet ^ mask for octet, mask in zip(key[at : at + 20], digest, strict=False))
    return salt + bytes(mixed) + hashlib.sha1(secret + key).digest()


def string_bytes(text: str) -> bytes:
    """A string of Java's DataOutput, of characters that UTF-8 has as Java has them."""
    return struct.pack(">H", len(text.encode())) + text.encode()


def sequence(content: bytes) -> bytes:
    """DER."""
    return value(0x30, content)


def value(tag: int, content: bytes) -> bytes:
    """DER, with a length in as few octets as there can be."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + content
