"""What SCRAM makes of a password (RFC 5802, RFC 7677), with the mechanisms as Kafka numbers them.

    salted password   PBKDF2(password, salt, iterations)
    client key        HMAC(salted password, "Client Key")         stored key   H(client key)
    server key        HMAC(salted password, "Server Key")
    client proof      client key XOR HMAC(stored key, what both have said)

Who has the stored key and the server key can check a client and prove to know it, and cannot log in. Passwords are UTF-8 as they
are: like Kafka, and unlike the RFC, this knows no SASLprep.
"""

import base64
import binascii
import hashlib
import hmac
from enum import IntEnum
from typing import Final

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384


class ScramMechanism(IntEnum):
    """A mechanism by its number in requests and records."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def text(self) -> str:
        """The mechanism's name in SASL."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """The name of its hash function, as hashlib has it."""
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()


MECHANISMS: Final = {mechanism.text: mechanism for mechanism in ScramMechanism}


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """What the other keys are made of. Takes some milliseconds."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """What a client proves to have."""
    return hmac.digest(salted, b"Client Key", mechanism.hash_name)


def stored_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """What a server checks that by."""
    return hashlib.new(mechanism.hash_name, client_key(mechanism, salted)).digest()


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """What a server proves to have."""
    return hmac.digest(salted, b"Server Key", mechanism.hash_name)


def client_proof(mechanism: ScramMechanism, salted: bytes, said: bytes) -> bytes:
    """The proof of one who knows the password, after what was ``said``."""
    signature = hmac.digest(stored_key(mechanism, salted), said, mechanism.hash_name)
    return _xor(client_key(mechanism, salted), signature)


def is_proof(mechanism: ScramMechanism, known_stored_key: bytes, said: bytes, proof: bytes) -> bool:
    """Return whether a client that sends ``proof`` after what was ``said`` knows the password."""
    signature = hmac.digest(known_stored_key, said, mechanism.hash_name)
    if len(proof) != len(signature):
        return False
    shown = hashlib.new(mechanism.hash_name, _xor(proof, signature)).digest()
    return hmac.compare_digest(shown, known_stored_key)


def server_signature(mechanism: ScramMechanism, known_server_key: bytes, said: bytes) -> bytes:
    """The server's proof."""
    return hmac.digest(known_server_key, said, mechanism.hash_name)


def encode_base64(data: bytes) -> str:
    """As it stands in messages."""
    return base64.b64encode(data).decode()


def decode_base64(text: str) -> bytes:
    """The same the other way round. Raises ValueError."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
