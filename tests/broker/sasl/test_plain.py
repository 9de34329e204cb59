import pytest

from odradek.broker.sasl.mechanism import AuthenticationFailed
from odradek.broker.sasl.plain import PlainServer, plain_users
from tests.cases import each_case

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
    assert causes == [("alice", "the password is wrong"), ("bob", "there is no such user")]
