"""The vectors of RFC 7677, and what they leave out by a client and a server that do not share code."""

import hashlib

import pytest

from odradek.protocol.scram import (
    MECHANISMS,
    ScramMechanism,
    client_key,
    client_proof,
    is_proof,
    salted_password,
    server_key,
    server_signature,
    stored_key,
)
from odradek.protocol.texts import decode_base64, encode_base64

SHA_256 = ScramMechanism.SCRAM_SHA_256
# RFC 7677, section 3.
SALT = decode_base64("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCES = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SAID = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCES},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCES}".encode()
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_proof_and_the_signature_are_those_of_the_rfc():
    salted = salted_password(SHA_256, "pencil", SALT, 4096)
    assert encode_base64(client_proof(SHA_256, salted, SAID)) == PROOF
    assert is_proof(SHA_256, stored_key(SHA_256, salted), SAID, decode_base64(PROOF))
    assert encode_base64(server_signature(SHA_256, server_key(SHA_256, salted), SAID)) == SIGNATURE


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_proof_is_one_of_one_password_and_of_what_was_said(mechanism):
    salted, other = (salted_password(mechanism, password, b"salt", 4096) for password in ("secret", "secreT"))
    known = stored_key(mechanism, salted)
    proof = client_proof(mechanism, salted, b"said")
    assert is_proof(mechanism, known, b"said", proof)
    assert not is_proof(mechanism, known, b"Said", proof)
    assert not is_proof(mechanism, known, b"said", client_proof(mechanism, other, b"said"))
    assert not is_proof(mechanism, known, b"said", proof[:-1])
    assert not is_proof(mechanism, known, b"said", b"")


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_the_stored_key_is_the_hash_of_the_client_key(mechanism):
    salted = salted_password(mechanism, "secret", b"salt", 4096)
    assert stored_key(mechanism, salted) == hashlib.new(mechanism.hash_name, client_key(mechanism, salted)).digest()


def test_mechanisms_have_the_names_of_sasl_and_the_numbers_of_kafka():
    assert MECHANISMS == {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
    assert [each.hash_name for each in ScramMechanism] == ["sha256", "sha512"]


def test_what_is_no_base64_is_refused():
    with pytest.raises(ValueError, match=r"base64|Invalid|Only"):
        decode_base64("a%b=")
