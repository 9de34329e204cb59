"""``odradek users`` against a broker."""

import pytest

BOTH = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.fixture
def password_file(tmp_path):
    file = tmp_path / "password"
    file.write_text("a secret\nand no more of it\n")
    return file


@pytest.fixture
def user(new_name):
    return new_name()


def listed(ask_json, user):
    return {row["mechanism"]: row["iterations"] for row in ask_json("users", "list") if row["user"] == user}


def test_a_user_that_is_added_is_listed_and_one_that_is_removed_is_not(ask_json, user, password_file):
    added = ask_json("users", "add", user, "--password-file", password_file)
    assert [(row["user"], row["mechanism"]) for row in added] == [(user, each) for each in BOTH]
    assert listed(ask_json, user) == dict.fromkeys(BOTH, 4096)
    assert [row["mechanism"] for row in ask_json("users", "remove", user)] == BOTH
    assert listed(ask_json, user) == {}


def test_one_mechanism_is_added_and_removed(ask_json, user, password_file):
    first, second = BOTH
    ask_json("users", "add", user, "--password-file", password_file, "--mechanism", second, "--iterations", 8192)
    assert listed(ask_json, user) == {second: 8192}
    ask_json("users", "add", user, "--password-file", password_file, "--mechanism", first)
    ask_json("users", "remove", user, "--mechanism", second)
    assert listed(ask_json, user) == {first: 4096}


def test_who_is_not_there_cannot_be_removed(ask, user):
    status, out, err = ask("users", "remove", user)
    assert (status, out) == (1, "")
    assert f"{user}: there is no such user with a SCRAM credential (RESOURCE_NOT_FOUND)" in err


def test_a_mechanism_that_is_not_there_cannot_be_removed(ask, user, password_file):
    ask("users", "add", user, "--password-file", password_file, "--mechanism", BOTH[0])
    status, _, err = ask("users", "remove", user, "--mechanism", BOTH[1])
    assert (status, "no credential for SCRAM-SHA-512" in err) == (1, True)


def test_a_password_is_not_shown(ask, user, password_file):
    assert "a secret" not in repr(ask("users", "add", user, "--password-file", password_file))


@pytest.mark.parametrize("content", ["", "\nsecond line\n"])
def test_there_is_no_user_without_a_password(ask, ask_json, user, tmp_path, content):
    file = tmp_path / "empty"
    file.write_text(content)
    status, _, err = ask("users", "add", user, "--password-file", file)
    assert (status, "the first line is empty" in err) == (2, True)
    assert listed(ask_json, user) == {}


def test_the_iterations_have_limits(ask, user, password_file):
    assert ask("users", "add", user, "--password-file", password_file, "--iterations", 4095)[0] == 2
