"""odradek's answers beside those that Apache Kafka gave to the same requests, and what is found if they are not the same."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from benchmarks.cluster.clusters import OdradekCluster
from tests.broker_process import BrokerProcess
from tests.campaigns.wire_differential import recording
from tests.campaigns.wire_differential.canonical import Canonical
from tests.campaigns.wire_differential.cases.bases import BASES
from tests.campaigns.wire_differential.cases.every import SLICES, every, warm_up
from tests.campaigns.wire_differential.cases.paths import fields_of, versions
from tests.campaigns.wire_differential.clusters import SPREADS_S, STORIES, internal_topics, serving
from tests.campaigns.wire_differential.compare import Difference, Named, differences, named, unnamed
from tests.campaigns.wire_differential.driver import Driver
from tests.campaigns.wire_differential.faulty import FAULTS, faulty
from tests.campaigns.wire_differential.script import Script
from tests.campaigns.wire_differential.settings import SETTINGS
from tests.cases import each_case

pytestmark = [pytest.mark.xdist_group("wire-differential"), pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def short() -> dict[str, Script]:
    return {script.name: script for script in recording.short()}


@pytest.fixture(scope="module")
def recorded():
    return recording.read()


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with BrokerProcess(tmp_path_factory.mktemp("wire") / "broker", settings=SETTINGS) as broker:
        driver = Driver(broker.address)
        driver.run(warm_up())
        yield driver


@pytest.fixture(scope="module")
def cluster_driver() -> Iterator[Driver]:
    with serving(OdradekCluster) as addresses:
        driver = Driver(addresses, SPREADS_S)
        driver.run(internal_topics())
        driver.run(warm_up())
        yield driver


def found(driver: Driver, recorded, scripts: list[Script]) -> list[Difference]:
    """What differs from the recording without a name."""
    all_found = []
    for script in scripts:
        expected = recorded[script.name].transcript
        all_found += differences(script, expected, driver.run(script, expected))
    return unnamed(all_found, named())[0]


@pytest.mark.parametrize("of_slice", SLICES)
def test_odradek_answers_as_kafka_did_or_the_difference_has_its_name(driver, short, recorded, of_slice):
    scripts = [script for script in short.values() if script.slice == of_slice and script.name in recorded]
    assert scripts
    assert [str(each) for each in found(driver, recorded, scripts)] == []


@pytest.mark.parametrize("of_slice", STORIES)
def test_three_brokers_tell_the_stories_as_one_of_kafka_did(cluster_driver, short, recorded, of_slice):
    scripts = [script for script in short.values() if script.slice == of_slice and script.name in recorded]
    assert scripts
    assert [str(each) for each in found(cluster_driver, recorded, scripts)] == []


@pytest.mark.interpreted
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(short, recorded, fault):
    with faulty(fault) as driver:
        told = found(driver, recorded, [short[FAULTS[fault].script]])
    assert {each.answer for each in told} == {FAULTS[fault].answer}


def test_no_two_scripts_use_the_same_names():
    scripts = list(every(SLICES, range(3)))
    assert len({script.digest() for script in scripts}) == len(scripts)


def test_the_recording_is_of_the_requests_that_are_sent_now(short, recorded):
    stale = [name for name, each in recorded.items() if name not in short or short[name].digest() != each.digest]
    assert stale == [], "make campaign NAME=wire-differential ARGS=--record"
    missing = short.keys() - recorded.keys()
    # Kafka did not answer some of these histories twice the same.
    assert {name.partition("/")[0] for name in missing} <= {"groups"}


def test_a_recording_holds_what_was_written(tmp_path, short):
    script = short["valid/LIST_GROUPS/v5"]
    transcript = [[(number, {"error_code": 0, "groups": [None, "#uuid 1"]})] for number in range(len(script.steps))]
    recording.write([(script, transcript)], tmp_path / "recorded")
    assert recording.read(tmp_path / "recorded") == {script.name: recording.Recorded(script.digest(), transcript)}


def test_a_recording_of_some_scripts_keeps_the_answers_to_the_others(tmp_path, short):
    first, second = short["valid/LIST_GROUPS/v5"], short["unknown/LIST_GROUPS/v5"]
    path = tmp_path / "recorded"
    recording.write([(first, [[(0, "old")]]), (second, [[(0, "old")]])], path)
    recording.write([(second, [[(0, "new")]])], path, others={first.name: recording.read(path)[first.name]})
    assert {name: each.transcript for name, each in recording.read(path).items()} == {
        first.name: [[(0, "old")]],
        second.name: [[(0, "new")]],
    }


def test_every_api_and_version_is_sent_in_every_slice_of_requests():
    served = {f"{api_key.name}/v{version}" for api_key, version in versions()}
    # Unregistering a broker has one field, which would end Kafka's. The rest have no field.
    without_edges = {
        "UNREGISTER_BROKER/v0",
        *(f"{key.name}/v{version}" for key, version in versions() if not list(fields_of(key, version))),
    }
    for of_slice in ("valid", "unknown", "bytes", "edges"):
        sent = {script.name.partition("/")[2] for script in every([of_slice], ())}
        assert served - (without_edges if of_slice == "edges" else set()) <= sent


@each_case("api_key", BASES)
def test_a_base_request_names_fields_that_there_are(api_key):
    known = {path for key, version in versions() if key is api_key for path, _ in fields_of(key, version)}
    assert set(_paths(BASES[api_key].fields, ())) <= known | {("resources", "configs", "config_operation")}


def _paths(value, above):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*above, name)
            yield from _paths(inner, (*above, name))
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item, above)


def test_the_canonical_form_makes_ids_equal_and_keeps_who_has_the_same():
    one, other = Canonical("wd-1-"), Canonical("wd-2-")
    mine, theirs = (f"c-{uuid4()}" for _ in range(2))
    assert one.answer("", {"member_id": mine, "producer_id": 4}) == other.answer("", {"member_id": theirs, "producer_id": 7})
    assert one.answer("", [{"producer_id": 4}, {"producer_id": 5}]) == [{"producer_id": "#pid 1"}, {"producer_id": "#pid 2"}]


def test_the_canonical_form_leaves_out_other_scripts_topics():
    topics = [{"name": "wd-1-t", "partitions": [1, 0]}, {"name": "wd-2-t"}, {"name": "__x"}]
    assert Canonical("wd-1-").answer("", topics) == [{"name": "@t", "partitions": [0, 1]}, {"name": "__x"}]


def test_a_row_names_its_difference_and_no_other():
    row = Named("FETCH responses.*", "v* base", "0", "*")
    difference = Difference("valid/FETCH/v4", "FETCH responses.partitions.error_code", "v4 base", "0", "3")
    other = Difference("valid/FETCH/v4", "FETCH responses.partitions.error_code", "v4 base", "1", "3")
    assert unnamed([difference, other], [row]) == ([other], {row: 1})
