"""``odradek format``: who has the id that was chosen, and what is left alone."""

import pytest
from click.testing import CliRunner

from odradek.cli.main import command
from odradek.protocol.api_keys import ApiKey
from tests.raw_client import RawClient

SETTINGS = ["--set", "node.id=7"]


@pytest.fixture
def run():
    def run_format(*arguments):
        return CliRunner().invoke(command, ["format", *SETTINGS, *map(str, arguments)], standalone_mode=False)

    return run_format


def meta(directory):
    lines = (directory / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def refusal(outcome):
    return outcome.exception.format_message()


def test_a_new_directory_has_the_id(run, tmp_path):
    outcome = run("--cluster-id", "the-cluster", "--data-dir", tmp_path / "a")
    assert outcome.stdout == f"{tmp_path / 'a'} is of cluster the-cluster, node 7\n"
    found = meta(tmp_path / "a")
    assert (found["cluster.id"], found["node.id"], found["version"]) == ("the-cluster", "7", "1")


def test_every_directory_has_the_same_id_and_one_of_its_own(run, tmp_path):
    run("--set", f"log.dirs={tmp_path / 'a'},{tmp_path / 'b'}", "--set", f"metadata.log.dir={tmp_path / 'm'}")
    found = [meta(tmp_path / name) for name in "abm"]
    assert len({each["cluster.id"] for each in found}) == 1
    assert len({each["directory.id"] for each in found}) == 3


def test_a_directory_that_is_formatted_is_left_alone(run, tmp_path):
    run("--cluster-id", "x", "--data-dir", tmp_path / "a")
    before = meta(tmp_path / "a")
    again = run("--cluster-id", "x", "--data-dir", tmp_path / "a")
    assert "already formatted" in refusal(again)
    assert run("--cluster-id", "x", "--data-dir", tmp_path / "a", "--ignore-formatted").exception is None
    other = run("--cluster-id", "y", "--data-dir", tmp_path / "a", "--ignore-formatted")
    assert "another cluster" in refusal(other)
    assert meta(tmp_path / "a") == before


def test_a_new_directory_beside_one_that_is_formatted_gets_its_id(run, tmp_path):
    run("--cluster-id", "x", "--data-dir", tmp_path / "a")
    run("--set", f"log.dirs={tmp_path / 'a'},{tmp_path / 'b'}", "--ignore-formatted")
    assert meta(tmp_path / "b")["cluster.id"] == "x"


def test_another_nodes_directory_is_refused(run, tmp_path):
    run("--cluster-id", "x", "--data-dir", tmp_path / "a")
    outcome = run("--set", "node.id=8", "--data-dir", tmp_path / "a", "--ignore-formatted")
    assert "node 7, not 8" in refusal(outcome)


def test_a_broker_starts_on_a_formatted_directory(run, tmp_path, broker_process):
    run("--cluster-id", "x", "--data-dir", tmp_path / "a")
    broker_process(tmp_path / "a", settings={"node.id": "7"}).stop()
    assert meta(tmp_path / "a")["cluster.id"] == "x"


# Users.

ALICE = "SCRAM-SHA-256=[name=alice,password=alice-secret]"


def test_a_cluster_begins_with_its_users(run, tmp_path, broker_process):
    more = 'SCRAM-SHA-512=[name=alice,iterations=8192,salt="c2FsdA==",saltedpassword="AAAA"]'
    outcome = run("--data-dir", tmp_path / "a", "--add-scram", ALICE, "--add-scram", more)
    assert outcome.exception is None
    assert "alice-secret" not in outcome.output
    broker = broker_process(data_dir=tmp_path / "a", settings={"node.id": 7})
    for _ in range(2):
        with RawClient(broker.host, broker.port) as client:
            (found,) = client.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=[]).results
        assert (found.user, [(each.mechanism, each.iterations) for each in found.credential_infos]) == (
            "alice",
            [(1, 4096), (2, 8192)],
        )
        broker.stop()
        broker.start()


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("alice", "not of the form"),
        ("PLAIN=[name=a,password=alice-secret]", "not of the form"),
        ("SCRAM-SHA-256=name=a,password=alice-secret", "not of the form"),
        ("SCRAM-SHA-256=[password=alice-secret]", "the user's name"),
        ("SCRAM-SHA-256=[name=a]", "give a password"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=AAAA]", "with its salt"),
        ("SCRAM-SHA-256=[name=a,password=alice-secret,iterations=4095]", "4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=alice-secret,iterations=many]", "4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=alice-secret,salt=!]", "base64"),
        ("SCRAM-SHA-256=[name=a,password=alice-secret,x=y]", "KEY=VALUE"),
    ],
)
def test_what_is_no_user_is_refused_without_its_password(run, tmp_path, argument, complaint):
    outcome = run("--data-dir", tmp_path / "a", "--add-scram", argument)
    assert complaint in refusal(outcome)
    assert "alice-secret" not in refusal(outcome)
    assert not (tmp_path / "a").exists()


def test_a_cluster_that_is_there_is_given_no_users(run, tmp_path):
    run("--data-dir", tmp_path / "a")
    for more in ([], ["--ignore-formatted"]):
        told = refusal(run("--data-dir", tmp_path / "a", *more, "--add-scram", ALICE))
        assert "odradek users add" in told
        assert "PLAINTEXT listener on 127.0.0.1" in told


def test_users_are_read_from_a_file(run, tmp_path, broker_process):
    (tmp_path / "users").write_text(f"{ALICE}\n\nSCRAM-SHA-512=[name=bob,password=bob-secret]\n")
    outcome = run("--data-dir", tmp_path / "a", "--add-scram-file", tmp_path / "users")
    assert outcome.exception is None
    broker = broker_process(data_dir=tmp_path / "a", settings={"node.id": 7})
    with RawClient(broker.host, broker.port) as client:
        found = client.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=[]).results
    assert sorted(each.user for each in found) == ["alice", "bob"]


def test_users_are_read_from_standard_input(tmp_path):
    arguments = ["format", "--data-dir", str(tmp_path / "a"), "--add-scram-file", "-"]
    assert CliRunner().invoke(command, arguments, input=ALICE).exit_code == 0
    assert CliRunner().invoke(command, arguments, input="alice-secret").exit_code == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [(f"{ALICE}\nalice-secret", "users, line 2: not of the form"), ("\n", "has no user"), (None, "No such file")],
)
def test_a_file_that_has_no_users_is_refused_without_its_passwords(run, tmp_path, text, complaint):
    if text is not None:
        (tmp_path / "users").write_text(text)
    told = refusal(run("--data-dir", tmp_path / "a", "--add-scram-file", tmp_path / "users"))
    assert complaint in told
    assert "alice-secret" not in told
    assert not (tmp_path / "a").exists()
