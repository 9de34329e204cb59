"""``odradek features`` against a broker."""

import json

import pytest

from odradek.cli.feature_levels import newest_release, release_levels
from odradek.controller.metadata.features import SUPPORTED_FEATURES

OF_4_3 = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 1,
    "metadata.version": 30,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def levels(ask_json):
    return {row["feature"]: row["level"] for row in ask_json("features", "describe")}


@pytest.fixture
def fresh(broker_process, command):
    """A command for a broker of its own."""
    broker = broker_process()
    return lambda *arguments: command(*arguments, "-b", broker.address)


def test_a_fresh_broker_has_the_levels_of_the_newest_release(ask_json):
    rows = {row["feature"]: row for row in ask_json("features", "describe")}
    ranges = {name: (row["lowest"], row["highest"]) for name, row in rows.items()}
    assert ranges == SUPPORTED_FEATURES
    # The quorum lists no voters until it is asked to.
    assert {name: row["level"] for name, row in rows.items()} == {**release_levels("4.4"), "kraft.version": 0}
    assert rows["metadata.version"]["metadata_version"] == "4.4-IV2"
    assert len({row["epoch"] for row in rows.values()}) == 1


def test_levels_are_lowered_and_raised_together_or_not_at_all(fresh):
    def ask_json(*arguments):
        status, out, err = fresh(*arguments, "--json")
        assert status == 0, err
        return json.loads(out)

    first = levels(ask_json)
    lower = ("downgrade", "--feature", "share.version=1", "--feature", "group.version=0")
    changed = [("group.version", 1, 0), ("share.version", 2, 1)]
    for is_dry in (True, False):
        rows = ask_json("features", *lower, *(["--dry-run"] if is_dry else []))
        assert [(row["feature"], row["before"], row["level"]) for row in rows] == changed
        assert levels(ask_json) == (first if is_dry else first | {"share.version": 1, "group.version": 0})
    for wrong, why in (
        (("upgrade", "--feature", "group.version=1", "--feature", "share.version=9"), "share.version cannot be set to 9"),
        (("upgrade", "--release-version", "4.3"), "metadata.version cannot be set to 30"),
        (("downgrade", "--unsafe", "--metadata", "4.3-IV0"), "metadata.version cannot be set to 30"),
    ):
        status, out, err = fresh("features", *wrong)
        assert (status, out) == (1, "")
        assert why in err
        assert "INVALID_UPDATE_VERSION" in err
    assert levels(ask_json) == first | {"share.version": 1, "group.version": 0}
    ask_json("features", "upgrade", "--release-version", "4.4.0")
    assert levels(ask_json) == release_levels("4.4")


def test_a_command_line_that_names_no_levels_or_wrong_ones_is_refused(ask):
    for arguments, why in (
        ((), "name the levels"),
        (("--feature", "group.version"), "is not FEATURE=LEVEL"),
        (("--feature", "group.version=1", "--feature", "group.version=1"), "is given twice"),
        (("--release-version", "2.8"), "there is no metadata.version 2.8"),
        (("--release-version", "4.4", "--metadata", "4.4"), "--release-version excludes"),
    ):
        status, out, err = ask("features", "upgrade", *arguments)
        assert (status, out) == (2, ""), arguments
        assert why in err


def test_a_brokers_release_is_that_of_its_highest_level():
    assert [newest_release(level) for level in (0, 6, 7, 25, 33, 34)] == [None, "3.0", "3.3", "4.0", "4.4", "4.4+"]
    assert release_levels("4.3.1") == OF_4_3
    assert release_levels("3.3") == dict.fromkeys(OF_4_3, 0) | {"metadata.version": 7}
