"""``odradek acls`` against a broker with an authorizer."""

import json
import shlex

import pytest

from tests.broker_process import BrokerProcess
from tests.project.documents import DOCS, code_blocks


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    settings = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
    with BrokerProcess(tmp_path_factory.mktemp("acls"), settings=settings) as started:
        yield started


def said(rows):
    return sorted(
        f"{row['permission']} {row['principal']} {row['operation']} {row['resource_type']} {row['resource']} {row['pattern']}"
        for row in rows
    )


def test_what_is_added_is_listed_until_it_is_removed(ask_json):
    added = ask_json(
        "acls", "add", "--allow", "User:a", "--operation", "read", "--operation", "WRITE", "--topic", "t", "--group", "g*"
    )
    assert said(added) == [
        "ALLOW User:a READ GROUP g PREFIXED",
        "ALLOW User:a READ TOPIC t LITERAL",
        "ALLOW User:a WRITE GROUP g PREFIXED",
        "ALLOW User:a WRITE TOPIC t LITERAL",
    ]
    ask_json("acls", "add", "--deny", "User:*", "--operation", "ALL", "--cluster", "--host", "10.0.0.7")
    assert len(ask_json("acls", "list")) == 5
    assert said(ask_json("acls", "list", "--group", "g*")) == said(added)[:1] + said(added)[2:3]
    assert ask_json("acls", "list", "--principal", "User:*")[0]["host"] == "10.0.0.7"
    removed = ask_json("acls", "remove", "--topic", "t", "--operation", "READ")
    assert said(removed) == ["ALLOW User:a READ TOPIC t LITERAL"]
    assert len(ask_json("acls", "remove", "--principal", "User:a")) == 3
    assert len(ask_json("acls", "remove", "--cluster")) == 1
    assert ask_json("acls", "list") == []


def test_rights_on_users_and_their_tokens_are_added(ask_json):
    added = ask_json("acls", "add", "--allow", "User:a", "--operation", "CREATE_TOKENS", "--user", "User:b", "--user", "User:c*")
    assert said(added) == ["ALLOW User:a CREATE_TOKENS USER User:b LITERAL", "ALLOW User:a CREATE_TOKENS USER User:c PREFIXED"]
    told = ask_json("acls", "add", "--allow", "User:a", "--operation", "DESCRIBE", "--delegation-token", "*")
    assert said(told) == ["ALLOW User:a DESCRIBE DELEGATION_TOKEN * LITERAL"]
    assert said(ask_json("acls", "list", "--user", "User:b")) == said(added)[:1]
    assert len(ask_json("acls", "remove", "--principal", "User:a")) == 3


def test_a_table_has_one_line_an_entry(ask):
    status, out, _ = ask("acls", "add", "--allow", "User:a", "--operation", "READ", "--transactional-id", "x")
    assert (status, [line.split() for line in out.splitlines()]) == (
        0,
        [
            ["PERMISSION", "PRINCIPAL", "HOST", "OPERATION", "RESOURCE-TYPE", "RESOURCE", "PATTERN"],
            ["ALLOW", "User:a", "*", "READ", "TRANSACTIONAL_ID", "x", "LITERAL"],
        ],
    )
    assert ask("acls", "remove", "--transactional-id", "x")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "--operation", "READ", "--topic", "t"),
        ("add", "--allow", "User:a", "--operation", "READ"),
        ("remove",),
    ],
)
def test_what_names_nothing_is_no_command(ask, arguments):
    status, _, err = ask("acls", *arguments)
    assert (status, "name a" in err) == (2, True)


def test_a_principal_that_is_none_is_refused(ask):
    status, out, err = ask("acls", "add", "--allow", "a", "--operation", "READ", "--topic", "t")
    assert (status, out) == (1, "")
    assert "a on t" in err
    assert "INVALID_REQUEST" in err


def test_json_of_nothing_is_a_list(ask):
    assert json.loads(ask("acls", "remove", "--topic", "none", "--json")[1]) == []


def test_the_commands_of_the_page_do_what_it_says(ask):
    [block] = code_blocks(DOCS / "acls.md", "console")
    outputs = []
    for line in block.splitlines():
        status, out, err = ask(*shlex.split(line.removeprefix("$ odradek ")))
        assert (status, err) == (0, "")
        outputs.append(out)
    # Titles, and the entries of three principals: two, two and one.
    assert len(outputs[3].splitlines()) == 6
    assert len(json.loads(outputs[4])) == 2
    assert "orders-" in outputs[5]
    for principal in ("User:alice", "User:bob", "User:mallory"):
        assert ask("acls", "remove", "--principal", principal)[0] == 0
