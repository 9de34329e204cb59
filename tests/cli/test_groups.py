"""``odradek groups`` against a broker, and groups of raw members."""

import json
from importlib import import_module
from io import BytesIO
from itertools import count

import pytest
from kio.serial import entity_writer

from odradek.protocol.api_keys import ApiKey

_numbers = count()


@pytest.fixture
def new_group():
    return lambda: f"group-{next(_numbers)}"


@pytest.fixture
def records(topic, client):
    client.produce(topic, b"a", b"b", b"c", b"d", b"e")
    return topic


def consumer_protocol(what, **fields):
    """A subscription or an assignment as consumers write it, in version 1."""
    module = import_module(f"kio.schema.consumer_protocol_{what}.v1.data")
    entity = getattr(module, f"ConsumerProtocol{what.capitalize()}")
    if what == "assignment":
        rows = tuple(module.TopicPartition(topic=name, partitions=tuple(indexes)) for name, indexes in fields["topics"].items())
        fields = {"assigned_partitions": rows}
    buffer = BytesIO(b"\0\1")
    buffer.seek(2)
    entity_writer(entity)(buffer, entity(**fields))
    return buffer.getvalue()


def join(client, group, topic, indexes, **fields):
    """Make ``client`` the one member of a group, owning these partitions; its member id."""
    subscription = consumer_protocol("subscription", topics=(topic,), owned_partitions=())
    joined = client.call(
        ApiKey.JOIN_GROUP,
        5 if fields else 3,
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": subscription}],
        **fields,
    )
    at = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}
    assignment = consumer_protocol("assignment", topics={topic: indexes})
    client.call(ApiKey.SYNC_GROUP, 3, **at, **fields, assignments=[{"member_id": joined.member_id, "assignment": assignment}])
    return joined.member_id


def commit(client, group, topic, offsets, member_id=""):
    rows = [{"partition_index": index, "committed_offset": offset} for index, offset in offsets.items()]
    answer = client.call(
        ApiKey.OFFSET_COMMIT,
        7,
        group_id=group,
        generation_id_or_member_epoch=1 if member_id else -1,
        member_id=member_id,
        topics=[{"name": topic, "partitions": rows}],
    )
    assert {partition.error_code for partition in answer.topics[0].partitions} == {0}


def offsets_of(document):
    return {row["partition"]: row["current_offset"] for row in document["partitions"]}


@pytest.fixture(autouse=True)
def _loaded(ask, broker):
    """The first command waits for the coordinator to load."""
    ask("groups", "describe", "nobody")


def test_a_group_is_listed_with_its_state(ask_json, client, topic, new_group):
    group = new_group()
    join(client, group, topic, [0])
    [row] = [row for row in ask_json("groups", "list") if row["group"] == group]
    assert row == {"group": group, "state": "Stable", "type": "classic", "protocol_type": "consumer", "coordinator": 1}


def test_groups_can_be_listed_by_state(ask_json, client, topic, new_group):
    stable, empty = new_group(), new_group()
    join(client, stable, topic, [0])
    commit(client, empty, topic, {0: 1})
    listed = {row["group"] for row in ask_json("groups", "list", "--state", "empty")}
    assert empty in listed
    assert stable not in listed


def test_a_group_is_described_with_owners_offsets_and_lag(ask_json, client, records, new_group):
    group = new_group()
    member_id = join(client, group, records, [0, 1])
    commit(client, group, records, {0: 2}, member_id)
    [document] = ask_json("groups", "describe", group)
    owner = {"consumer_id": member_id, "host": "/127.0.0.1", "client_id": "raw"}
    assert document["partitions"] == [
        {"topic": records, "partition": 0, "current_offset": 2, "log_end_offset": 5, "lag": 3, **owner},
        {"topic": records, "partition": 1, "current_offset": None, "log_end_offset": 0, "lag": None, **owner},
    ]
    assert (document["state"], document["protocol"]) == ("Stable", "range")


def test_members_are_described_with_subscription_and_assignment(ask_json, client, topic, new_group):
    group = new_group()
    member_id = join(client, group, topic, [2, 0], group_instance_id="i1")
    [document] = ask_json("groups", "describe", group)
    assert document["members"] == [
        {
            "consumer_id": member_id,
            "instance_id": "i1",
            "client_id": "raw",
            "host": "/127.0.0.1",
            "subscription": [topic],
            "assignment": {topic: [0, 2]},
        }
    ]


def test_a_description_is_three_tables(ask, client, records, new_group):
    group = new_group()
    commit(client, group, records, {0: 5, 2: 0})
    status, out, err = ask("groups", "describe", group)
    assert (status, err) == (0, "")
    summary, partitions = (part.splitlines() for part in out.split("\n\n"))
    assert summary[1].split() == [group, "Empty", "classic", "-", summary[1].split()[4], "(1)", "0"]
    assert [line.split()[:5] for line in partitions[1:]] == [[records, "0", "5", "5", "0"], [records, "2", "0", "0", "0"]]
    member_id = join(client, group, records, [0])
    members = ask("groups", "describe", group)[1].split("\n\n")[2].splitlines()
    assert members[1].split() == [member_id, "-", "/127.0.0.1", "raw", "1", f"{records}(0)"]


def test_a_member_whose_bytes_are_no_assignment_is_described_without(ask_json, client, topic, new_group):
    group = new_group()
    joined = client.call(
        ApiKey.JOIN_GROUP,
        3,
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[{"name": "own", "metadata": b"\xff\xff?"}],
    )
    at = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}
    client.call(ApiKey.SYNC_GROUP, 3, **at, assignments=[{"member_id": joined.member_id, "assignment": b"\0\1\0\0\0\7"}])
    [document] = ask_json("groups", "describe", group)
    [member] = document["members"]
    assert (member["assignment"], member["subscription"]) == (None, None)


def test_an_unknown_group_is_refused_and_the_others_described(ask, client, topic, new_group):
    known = new_group()
    commit(client, known, topic, {0: 0})
    status, out, err = ask("groups", "describe", "zebra", known, "--json")
    assert (status, err) == (1, "odradek: zebra: there is no such group (GROUP_ID_NOT_FOUND)\n")
    assert [document["group"] for document in json.loads(out)] == [known]


def test_the_groups_that_a_wrong_name_resembles_are_suggested(ask, client, topic):
    commit(client, "settlement", topic, {0: 0})
    for command in ("describe", "delete"):
        status, out, err = ask("groups", command, "setlement")
        assert (status, out) == (1, "")
        assert err == "odradek: setlement: there is no such group; did you mean settlement? (GROUP_ID_NOT_FOUND)\n"


def test_offsets_of_a_deleted_topic_are_not_shown_with_an_end(ask, ask_json, client, new_name, new_group):
    topic, group = new_name(), new_group()
    ask("topics", "create", topic)
    member_id = join(client, group, topic, [0])
    ask("topics", "delete", topic)
    [document] = ask_json("groups", "describe", group)
    [row] = document["partitions"]
    assert (row["consumer_id"], row["log_end_offset"], row["lag"]) == (member_id, None, None)


def test_a_deleted_group_is_gone(ask, client, topic):
    # It resembles no other group, so none is suggested.
    group = "walrus"
    commit(client, group, topic, {0: 0})
    assert ask("groups", "delete", group) == (0, f"GROUP\n{group}\n", "")
    assert ask("groups", "delete", group) == (1, "", f"odradek: {group}: there is no such group (GROUP_ID_NOT_FOUND)\n")


def test_a_group_with_members_is_not_deleted(ask, client, topic, new_group):
    group = new_group()
    join(client, group, topic, [0])
    assert ask("groups", "delete", group) == (1, "", f"odradek: {group}: the group still has members (NON_EMPTY_GROUP)\n")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (["--to-earliest"], {0: 1, 1: 0, 2: 0}),
        (["--to-latest"], {0: 5, 1: 0, 2: 0}),
        (["--to-current"], {0: 3, 1: 0, 2: 0}),
        (["--to-offset", 4], {0: 4, 1: 0, 2: 0}),
        (["--to-offset", 99], {0: 5, 1: 0, 2: 0}),
        (["--to-offset", 0], {0: 1, 1: 0, 2: 0}),
        (["--shift-by", 1], {0: 4, 1: 0, 2: 0}),
        (["--shift-by", -1], {0: 2, 1: 0, 2: 0}),
        (["--to-datetime", "2023-11-14T22:13:20"], {0: 1, 1: 0, 2: 0}),
        (["--to-datetime", "2023-11-14T23:13:21+01:00"], {0: 5, 1: 0, 2: 0}),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_offsets_are_reset_within_the_log(ask, ask_json, client, records, new_group, target, expected):
    group = new_group()
    rows = [{"partition_index": 0, "offset": 1}]
    client.call(ApiKey.DELETE_RECORDS, 2, topics=[{"name": records, "partitions": rows}])
    commit(client, group, records, {0: 3})
    status, _, err = ask("groups", "reset-offsets", group, "--topic", records, *target, "--execute")
    assert (status, err) == (0, "")
    [document] = ask_json("groups", "describe", group)
    assert offsets_of(document) == expected


def test_nothing_is_reset_without_execute(ask, ask_json, client, records, new_group):
    group = new_group()
    commit(client, group, records, {0: 3})
    status, out, err = ask("groups", "reset-offsets", group, "--topic", records, "--to-earliest", "--json")
    assert status == 0
    assert json.loads(out)[0] == {"group": group, "topic": records, "partition": 0, "current_offset": 3, "new_offset": 0}
    assert err == "odradek: nothing was changed; add --execute to set these offsets\n"
    assert offsets_of(ask_json("groups", "describe", group)[0]) == {0: 3}


def test_only_the_partitions_named_are_reset(ask, ask_json, client, records, new_group):
    group = new_group()
    commit(client, group, records, {0: 3, 1: 0})
    ask("groups", "reset-offsets", group, "--topic", f"{records}:0,2", "--to-earliest", "--execute")
    assert offsets_of(ask_json("groups", "describe", group)[0]) == {0: 0, 1: 0, 2: 0}


def test_all_topics_are_those_the_group_has_offsets_of(ask, ask_json, client, records, topic, new_name, new_group):
    group, other = new_group(), new_name()
    ask("topics", "create", other)
    commit(client, group, records, {0: 3})
    ask("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--execute")
    [document] = ask_json("groups", "describe", group)
    assert {(row["topic"], row["partition"]): row["current_offset"] for row in document["partitions"]} == {(records, 0): 5}


def test_a_group_that_is_not_there_is_made_by_its_first_offsets(ask, ask_json, records, new_group):
    group = new_group()
    assert ask("groups", "reset-offsets", group, "--topic", records, "--to-latest", "--execute")[0] == 0
    assert offsets_of(ask_json("groups", "describe", group)[0]) == {0: 5, 1: 0, 2: 0}
    assert ask("groups", "reset-offsets", new_group(), "--all-topics", "--to-latest")[0] == 1


def test_a_group_with_members_is_not_reset(ask, client, records, new_group):
    group = new_group()
    join(client, group, records, [0])
    status, out, err = ask("groups", "reset-offsets", group, "--topic", records, "--to-latest", "--execute")
    assert (status, out) == (1, "")
    assert err == f"odradek: {group}: the group is Stable and has members: stop them first (NON_EMPTY_GROUP)\n"


def test_a_partition_that_is_not_there_is_refused_and_the_others_reset(ask, ask_json, records, new_group):
    group = new_group()
    status, _, err = ask("groups", "reset-offsets", group, "--topic", f"{records}:0,7", "--to-latest", "--execute")
    assert status == 1
    assert err == f"odradek: {records}-7: there is no such topic or partition (UNKNOWN_TOPIC_OR_PARTITION)\n"
    assert offsets_of(ask_json("groups", "describe", group)[0]) == {0: 5}


@pytest.mark.parametrize(
    "arguments",
    [
        ("reset-offsets", "g", "--to-latest"),
        ("reset-offsets", "g", "--topic", "t", "--all-topics", "--to-latest"),
        ("reset-offsets", "g", "--topic", "t"),
        ("reset-offsets", "g", "--topic", "t", "--to-latest", "--to-earliest"),
        ("reset-offsets", "g", "--topic", "t", "--to-offset", "-1"),
        ("reset-offsets", "g", "--topic", "t", "--to-datetime", "yesterday"),
        ("reset-offsets", "g", "--topic", "t:x", "--to-latest"),
        ("describe",),
        ("delete",),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_status_2(command, arguments):
    status, out, err = command("groups", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
