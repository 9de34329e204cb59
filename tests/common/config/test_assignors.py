"""``group.consumer.assignors``: odradek's own, and a third party's by entry points."""

import pytest

from odradek.common.config.broker_config import InvalidConfig, load
from odradek.common.config.checks import third_party_assignors


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes a package that registers entry points, by name, and has this source."""

    def make(package, source, **entry_points):
        (tmp_path / f"{package}.py").write_text(source)
        installed = tmp_path / f"{package}-1.0.dist-info"
        installed.mkdir()
        lines = [f"{name} = {target}" for name, target in entry_points.items()]
        (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (installed / "entry_points.txt").write_text("\n".join(["[odradek.assignors]", *lines]))
        monkeypatch.syspath_prepend(tmp_path)

    return make


def refused(names):
    with pytest.raises(InvalidConfig) as refused:
        load(None, {"group.consumer.assignors": names})
    assert (refused.value.key, str(refused.value).count("\n")) == ("group.consumer.assignors", 0)
    return refused.value.value, refused.value.allowed


def test_odradeks_own_need_no_entry_point():
    assert load(None, {"group.consumer.assignors": "range"})["group.consumer.assignors"] == ("range",)
    assert third_party_assignors(("uniform", "range")) == {}


def test_a_registered_function_is_found_by_its_name(install):
    install("mine_found", "def assign(group):\n    return {}\n", mine="mine_found:assign")
    assert load(None, {"group.consumer.assignors": "uniform,mine"})["group.consumer.assignors"] == ("uniform", "mine")
    assert third_party_assignors(("uniform", "mine"))["mine"](None) == {}


def test_an_unknown_name_is_refused_with_those_that_there_are(install):
    assert refused("uniform,yours") == ("yours", "uniform, range or an entry point in odradek.assignors (there are: none)")
    install("mine_known", "", mine="mine_known:assign")
    assert refused("yours") == ("yours", "uniform, range or an entry point in odradek.assignors (there are: mine)")


def test_a_name_of_two_is_refused(install):
    install("mine_one", "", mine="mine_one:assign")
    install("mine_two", "", mine="mine_two:assign")
    assert refused("mine") == (
        "mine",
        "uniform, range or an entry point in odradek.assignors (there are: mine; 2 have this name)",
    )


def test_what_cannot_be_loaded_is_refused(install):
    install("mine_broken", "raise OSError('no')", mine="mine_broken:assign")
    assert refused("mine") == ("mine", "an entry point that can be loaded: mine_broken:assign: OSError('no')")


def test_what_is_no_function_is_refused(install):
    install("mine_number", "assign = 3", mine="mine_number:assign")
    assert refused("mine") == ("mine", "an entry point that is a function: mine_number:assign is of type int")


@pytest.mark.parametrize("names", ["", "uniform,,range"])
def test_a_list_without_names_is_refused(names):
    assert refused(names)[0] == names
