"""``odradek topics alter`` and ``odradek topics delete-records`` against a broker."""

import pytest

from tests.cases import each_case


@pytest.fixture
def starts(ask_json):
    """The log start offset of each partition of a topic."""
    return lambda topic: [row["log_start_offset"] for row in ask_json("topics", "describe", topic)[0]["partitions"]]


def test_partitions_are_added_and_configs_are_changed(ask_json, topic):
    altered = ask_json("topics", "alter", topic, "--partitions", 5, "--config", "retention.ms=1000", "--config", "segment.ms=9")
    assert altered == [{"topic": topic, "partitions": 5, "configs": ["retention.ms", "segment.ms"]}]
    [described] = ask_json("topics", "describe", topic)
    assert (len(described["partitions"]), described["configs"]) == (5, {"retention.ms": "1000", "segment.ms": "9"})
    ask_json("topics", "alter", topic, "--remove-config", "segment.ms")
    assert ask_json("topics", "describe", topic)[0]["configs"] == {"retention.ms": "1000"}


def test_the_same_number_of_partitions_is_no_failure(ask, topic):
    assert ask("topics", "alter", topic, "--partitions", 3)[0] == 0


def test_fewer_partitions_are_refused(ask, topic):
    status, _, err = ask("topics", "alter", topic, "--partitions", 2)
    assert (status, err.endswith("(INVALID_PARTITIONS)\n")) == (1, True)


def test_a_config_that_does_not_exist_is_refused_and_the_right_one_suggested(ask, topic):
    status, _, err = ask("topics", "alter", topic, "--config", "retension.ms=1")
    assert (status, "there is no config retension.ms; did you mean retention.ms" in err) == (1, True)


def test_a_topic_that_does_not_exist_is_refused_and_the_others_are_altered(ask, ask_json, topic):
    status, out, err = ask("topics", "alter", f"{topic}x", topic, "--partitions", 4)
    assert (status, topic in out, f"did you mean {topic}" in err) == (1, True, True)
    assert len(ask_json("topics", "describe", topic)[0]["partitions"]) == 4


def test_without_a_change_nothing_is_asked(ask, topic):
    assert ask("topics", "alter", topic)[0] == 2


@each_case(
    ("before", "expected"),
    [("end", 6), ("2", 2), ("-2", 4), ("-99", 0), ("2030-01-01", 6), ("2020-01-01", 0), ("0s", 6), ("1h", 0)],
    ids=str,
)
def test_records_are_deleted_before_an_offset_or_a_time(ask, ask_json, starts, new_name, before, expected):
    name = new_name()
    ask_json("topics", "create", name, "--partitions", 2)
    ask("produce", name, *"abcdef", "--partition", 1)
    deleted = ask_json("topics", "delete-records", name, "--before", before, "--partition", 1)
    assert deleted == [{"topic": name, "partition": 1, "log_start_offset": expected}]
    assert starts(name) == [0, expected]


def test_an_offset_beyond_the_end_is_refused_for_its_partition(ask, starts, topic):
    ask("produce", topic, "a", "--partition", 0)
    status, out, err = ask("topics", "delete-records", topic, "--before", 1)
    assert (status, err.count("OFFSET_OUT_OF_RANGE"), out.split()[3:]) == (1, 2, [topic, "0", "1"])
    assert starts(topic) == [1, 0, 0]
