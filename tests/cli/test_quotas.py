"""``odradek quotas`` against a broker."""

import json
import shlex

import pytest

from tests.project.documents import DOCS, code_blocks

PRODUCE, REQUESTS, CONNECTIONS = "producer_byte_rate", "request_percentage", "connection_creation_rate"


@pytest.fixture
def user(new_name):
    return new_name()


def said(rows):
    return [(row["user"], row["client_id"], row["ip"], row["quota"], row["value"]) for row in rows]


def test_what_is_set_is_listed_until_it_is_removed(ask_json, user):
    entity = ("--user", user, "--default-client-id")
    rows = [(user, "<default>", None, PRODUCE, 1048576), (user, "<default>", None, REQUESTS, 12.5)]
    assert said(ask_json("quotas", "set", *entity, f"{PRODUCE}=1048576", f"{REQUESTS}=12.5")) == rows
    assert said(ask_json("quotas", "list", "--user", user)) == rows
    assert said(ask_json("quotas", "remove", *entity, PRODUCE)) == rows[:1]
    assert said(ask_json("quotas", "list", *entity)) == rows[1:]
    assert said(ask_json("quotas", "remove", *entity)) == rows[1:]
    assert ask_json("quotas", "list", "--user", user) == []


def test_a_name_selects_entities_that_have_it_beside_others_and_removes_of_its_own_alone(ask_json, user):
    alone, both = ("--user", user), ("--user", user, "--client-id", "c")
    for entity in (alone, both):
        ask_json("quotas", "set", *entity, f"{PRODUCE}=5")
    assert said(ask_json("quotas", "list", "--user", user)) == [
        (user, None, None, PRODUCE, 5),
        (user, "c", None, PRODUCE, 5),
    ]
    ask_json("quotas", "remove", "--user", user)
    assert said(ask_json("quotas", "list", "--user", user)) == [(user, "c", None, PRODUCE, 5)]
    ask_json("quotas", "remove", *both)


def test_a_table_has_one_line_a_quota(ask):
    status, out, _ = ask("quotas", "set", "--ip", "10.0.0.7", f"{CONNECTIONS}=3")
    assert (status, [line.split() for line in out.splitlines()]) == (
        0,
        [["USER", "CLIENT-ID", "IP", "QUOTA", "VALUE"], ["-", "-", "10.0.0.7", CONNECTIONS, "3"]],
    )
    assert ask("quotas", "remove", "--ip", "10.0.0.7")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", f"{PRODUCE}=5"), "name a user, a client id or an address"),
        (("remove",), "name a user, a client id or an address"),
        (("set", "--default-user"), "Missing argument"),
        (("set", "--default-user", PRODUCE), "is not QUOTA=NUMBER"),
        (("set", "--default-user", f"{PRODUCE}=many"), "is not QUOTA=NUMBER"),
        (("set", "--default-user", f"{PRODUCE}=nan"), "is not QUOTA=NUMBER"),
        (("set", "--user", "a", "--default-user", f"{PRODUCE}=5"), "exclude each other"),
    ],
)
def test_what_cannot_be_meant_is_no_command(ask, arguments, message):
    status, _, err = ask("quotas", *arguments)
    assert (status, message in err) == (2, True)


def test_what_the_broker_refuses_is_told_in_one_line(ask, user):
    status, out, err = ask("quotas", "set", "--user", user, f"{PRODUCE}=1.5")
    assert (status, out) == (1, "")
    assert f"user {user}: {PRODUCE} cannot be a fractional value (INVALID_REQUEST)" in err


def test_what_is_not_set_cannot_be_removed(ask, user):
    status, out, err = ask("quotas", "remove", "--user", user)
    assert (status, out) == (1, "")
    assert f"user {user}: there is no quota (RESOURCE_NOT_FOUND)" in err


def test_the_commands_of_the_page_do_what_it_says(ask):
    block = next(block for block in code_blocks(DOCS / "quotas.md", "console") if "$ odradek quotas" in block)
    outputs = {}
    for line in block.splitlines():
        said_on_the_page = line.removeprefix("$ odradek ")
        status, out, err = ask(*shlex.split(said_on_the_page))
        assert (status, err) == (0, "")
        outputs[said_on_the_page] = out
    assert len(json.loads(outputs["quotas list --user alice --json"])) == 3
    assert outputs["quotas list"].count("\n") == 3
