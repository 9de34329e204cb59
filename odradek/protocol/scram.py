"""The keys and proofs that SCRAM derives from a password (RFC 5802, RFC 7677), with Kafka's numbers of mechanisms.

    salted password   PBKDF2(password, salt, iterations)
    client key        HMAC(salted password, "Client Key")         stored key   H(client key)
    server key        HMAC(salted password, "Server Key")
    client proof      client key XOR HMAC(stored key, the messages exchanged)

The stored key and the server key are enough to check a client, and to prove that to the client, but not to log in. Passwords are
plain UTF-8: like Kafka, and unlike the RFC, this does not apply SASLprep.
"""

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
        """Return the mechanism's name in SASL."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """Return the name of its hash function in hashlib."""
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()


MECHANISMS: Final = {mechanism.text: mechanism for mechanism in ScramMechanism}


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password, from which the other keys are derived. Takes some milliseconds."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key that a client proves to have."""
    return hmac.digest(salted, b"Client Key", mechanism.hash_name)


def stored_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key with which a server checks a client's proof."""
    return hashlib.new(mechanism.hash_name, client_key(mechanism, salted)).digest()


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key that a server proves to have."""
    return hmac.digest(salted, b"Server Key", mechanism.hash_name)


def client_proof(mechanism: ScramMechanism, salted: bytes, said: bytes) -> bytes:
    """Return the proof of a client that knows the password, for the exchanged messages ``said``."""
    signature = hmac.digest(stored_key(mechanism, salted), said, mechanism.hash_name)
    return _xor(client_key(mechanism, salted), signature)


def is_proof(mechanism: ScramMechanism, known_stored_key: bytes, said: bytes, proof: bytes) -> bool:
    """Return whether ``proof`` shows that the client knows the password, for the exchanged messages ``said``."""
    signature = hmac.digest(known_stored_key, said, mechanism.hash_name)
    if len(proof) != len(signature):
        return False
    shown = hashlib.new(mechanism.hash_name, _xor(proof, signature)).digest()
    return hmac.compare_digest(shown, known_stored_key)


def server_signature(mechanism: ScramMechanism, known_server_key: bytes, said: bytes) -> bytes:
    """Return the server's proof for the exchanged messages ``said``."""
    return hmac.digest(known_server_key, said, mechanism.hash_name)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
