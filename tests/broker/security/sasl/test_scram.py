import re
from types import SimpleNamespace

import pytest

from odradek.broker.security.sasl.mechanism import AuthenticationFailed, PlainServer, plain_users
from odradek.broker.security.sasl.scram import ScramServer, TokenCredential, new_nonce, no_token
from odradek.protocol.scram import (
    ScramMechanism,
    client_proof,
    salted_password,
    server_key,
    server_signature,
    stored_key,
)
from odradek.protocol.texts import encode_base64
from tests.cases import each_case

SHA_256, SHA_512 = ScramMechanism


def credential(mechanism, password, salt=b"salt", iterations=4096):
    salted = salted_password(mechanism, password, salt, iterations)
    return SimpleNamespace(
        salt=salt, stored_key=stored_key(mechanism, salted), server_key=server_key(mechanism, salted), iterations=iterations
    )


def server(mechanism=SHA_256, users=None, nonce="broker"):
    users = {"alice": credential(mechanism, "alice-secret")} if users is None else users
    return ScramServer(mechanism, users.get, lambda: nonce)


def final(mechanism, password, bare, first_answer, header="n,,"):
    """The client's second message, and the signature that it expects."""
    values = dict(part.split("=", 1) for part in first_answer.decode().split(","))
    salted = salted_password(mechanism, password, b"salt", int(values["i"]))
    without_proof = f"c={encode_base64(header.encode())},r={values['r']}"
    said = f"{bare},{first_answer.decode()},{without_proof}".encode()
    proof = encode_base64(client_proof(mechanism, salted, said))
    signature = encode_base64(server_signature(mechanism, server_key(mechanism, salted), said))
    return f"{without_proof},p={proof}".encode(), f"v={signature}".encode()


def test_the_exchange_of_rfc_7677():
    salt = bytes.fromhex("5b6d99689d12358eeca04b141236fa81")
    known = credential(SHA_256, "pencil", salt)
    mine = ScramServer(SHA_256, {"user": known}.get, lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    nonces = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert mine.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == b"r=" + nonces + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    proof = b"c=biws,r=" + nonces + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert mine.evaluate(proof) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert (mine.is_complete, mine.user) == (True, "user")


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
@pytest.mark.parametrize(
    ("header", "bare"),
    [("n,,", "n=alice,r=mine"), ("n,a=alice,", "n=alice,r=mine"), ("n,,", "m=x,n=alice,r=mine"), ("n,,", "n=alice,r=mine,e=1")],
)
def test_a_user_who_knows_the_password_is_let_in_and_finds_the_broker_knows_it(mechanism, header, bare):
    mine = server(mechanism)
    answer = mine.evaluate((header + bare).encode())
    assert answer.startswith(b"r=minebroker,")
    message, signature = final(mechanism, "alice-secret", bare, answer, header)
    assert mine.evaluate(message) == signature
    assert (mine.is_complete, mine.user) == (True, "alice")


def test_a_name_may_have_commas_and_equals_signs():
    mine = server(users={"a,b=c": credential(SHA_256, "secret")})
    bare = "n=a=2Cb=3Dc,r=mine"
    message, _ = final(SHA_256, "secret", bare, mine.evaluate(f"n,,{bare}".encode()))
    mine.evaluate(message)
    assert mine.user == "a,b=c"


def refused(mine, *messages):
    *first, last = messages
    for message in first:
        mine.evaluate(message)
    with pytest.raises(AuthenticationFailed) as caught:
        mine.evaluate(last)
    assert not mine.is_complete
    return caught.value


def test_a_wrong_password_is_refused_without_a_word():
    mine = server()
    message, _ = final(SHA_256, "wrong", "n=alice,r=mine", mine.evaluate(b"n,,n=alice,r=mine"))
    failure = refused(mine, message)
    assert (failure.told, failure.user, failure.cause) == (None, "alice", "the password is wrong")


def test_a_proof_for_another_nonce_is_refused():
    mine = server()
    message, _ = final(SHA_256, "alice-secret", "n=alice,r=mine", mine.evaluate(b"n,,n=alice,r=mine"))
    assert refused(mine, message.replace(b"r=minebroker", b"r=minebroken")).cause == "the nonce differs from the server's"


def test_an_unknown_user_and_one_for_another_mechanism_are_refused_alike():
    failure = refused(server(users={}), b"n,,n=bob,r=mine")
    assert (failure.told, failure.user) == (None, "bob")


def test_a_user_is_no_other_user():
    failure = refused(server(), b"n,a=bob,n=alice,r=mine")
    assert failure.told == "Authentication failed: Client requested an authorization id that is different from username"


def test_a_credential_of_too_few_iterations_is_not_used():
    assert "iterations" in refused(server(users={"alice": credential(SHA_256, "s", iterations=4095)}), b"n,,n=alice,r=m").cause


TOKEN = TokenCredential("bob", 12_345, credential(SHA_256, "aG1hYw=="))


def by_token(token=TOKEN):
    return ScramServer(
        SHA_256, {"alice": credential(SHA_256, "alice-secret")}.get, lambda: "broker", {"id": token}.get if token else no_token
    )


def test_who_shows_a_token_is_its_owner_until_it_expires():
    mine, bare = by_token(), "n=id,r=mine,tokenauth=true"
    message, _ = final(SHA_256, "aG1hYw==", bare, mine.evaluate(f"n,a=id,{bare}".encode()), "n,a=id,")
    mine.evaluate(message)
    assert (mine.is_complete, mine.user, mine.expires_ms, mine.by_token) == (True, "bob", 12_345, True)


@each_case("extension", ["tokenauth=true", "tokenauth=TRUE", "e=1,tokenauth=true", "tokenauth=true,e=1"])
def test_a_token_is_asked_for_in_any_case(extension):
    mine = by_token()
    mine.evaluate(f"n,,n=id,r=mine,{extension}".encode())
    assert mine.by_token


@each_case("extension", ["", ",tokenauth=false", ",tokenauth=yes", ",e=tokenauth=true", ",tokenauths=true"])
def test_who_does_not_ask_for_a_token_is_a_user(extension):
    mine = by_token()
    assert "no such user" in refused(mine, f"n,,n=id,r=mine{extension}".encode()).cause
    mine = by_token()
    mine.evaluate(f"n,,n=alice,r=mine{extension}".encode())
    assert (mine.by_token, mine.user, mine.expires_ms) == (False, "alice", None)


@pytest.mark.parametrize("token", [TOKEN, None])
def test_a_user_is_no_token(token):
    failure = refused(by_token(token), b"n,,n=alice,r=mine,tokenauth=true")
    assert (failure.told, failure.user) == (None, "alice")


def test_a_wrong_hmac_is_refused_like_a_wrong_password():
    mine, bare = by_token(), "n=id,r=mine,tokenauth=true"
    message, _ = final(SHA_256, "aG1hYx==", bare, mine.evaluate(f"n,,{bare}".encode()))
    assert refused(mine, message).cause == "the password is wrong"


def test_the_owner_is_no_authorization_id():
    told = "Authentication failed: Client requested an authorization id that is different from username"
    assert refused(by_token(), b"n,a=bob,n=id,r=mine,tokenauth=true").told == told


@each_case(
    "message",
    [b"", b"n", b"y,,n=alice,r=mine", b"p=tls-unique,,n=alice,r=m", b"n,,n=alice", b"n,,n=a,b,r=m", b"n,,n=,r=m", b"\xff\xfe"],
)
def test_what_is_no_first_message_is_refused(message):
    assert refused(server(), message).user is None


@each_case("message", [b"", b"c=biws,r=minebroker", b"c=biws,r=minebroker,p=%", b"n,,n=alice,r=mine"])
def test_what_is_no_final_message_is_refused(message):
    assert "final" in refused(server(), b"n,,n=alice,r=mine", message).cause


def test_nonces_are_printable_and_never_the_same():
    nonces = {new_nonce() for _ in range(100)}
    assert len(nonces) == 100
    assert all(re.fullmatch(r"[\x21-\x2b\x2d-\x7e]{32,}", nonce) for nonce in nonces)


USERS = plain_users({"user_alice": "alice-secret", "user_ö": "ü", "username": "admin", "password": "admin-secret", "user_": "x"})


def authenticate(token):
    server = PlainServer(USERS)
    assert server.evaluate(token) == b""
    assert server.is_complete
    return server.user


def test_users_are_the_options_that_begin_with_user_():
    assert USERS.keys() == {"alice", "ö", ""}


@pytest.mark.parametrize("token", [b"\0alice\0alice-secret", b"alice\0alice\0alice-secret"])
def test_a_user_with_the_right_password_is_let_in(token):
    assert authenticate(token) == "alice"


def test_names_and_passwords_are_utf_8():
    assert authenticate("\0ö\0ü".encode()) == "ö"


@each_case(
    ("token", "told"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0bob\0alice-secret", "Authentication failed: Invalid username or password"),
        (b"\0admin\0admin-secret", "Authentication failed: Invalid username or password"),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0alice-secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0alice-secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (
            b"bob\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"\0alice\0\xff", "Authentication failed: Invalid username or password"),
    ],
)
def test_a_client_is_refused_in_kafkas_words(token, told):
    server = PlainServer(USERS)
    with pytest.raises(AuthenticationFailed) as caught:
        server.evaluate(token)
    assert caught.value.told == told
    assert not server.is_complete
    assert "secret" not in caught.value.cause + repr(caught.value)


def test_the_log_is_told_what_the_client_is_not():
    causes = []
    for token in (b"\0alice\0wrong", b"\0bob\0wrong"):
        with pytest.raises(AuthenticationFailed) as caught:
            PlainServer(USERS).evaluate(token)
        causes.append((caught.value.user, caught.value.cause))
    assert causes == [("alice", "the password is wrong"), ("bob", "no such user")]
