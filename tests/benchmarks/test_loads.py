"""The list of loads, and what a load prints."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import parse_arguments
from benchmarks.load_tool import Measurement, command, parse_measurement
from benchmarks.peers import UNDER_LOAD, server_properties
from benchmarks.scenarios import LOADS, NAMES, TLS_LOADS, Load, Measure
from benchmarks.tls import certificates
from tests.cases import each_case

LATENCY = {
    "load": "latency",
    "records": 2000,
    "seconds": 4.0,
    "p50_ms": 0.7,
    "p99_ms": 2.5,
    "server_cpu_s": 0.5,
    "client_cpu_s": 0.2,
}


def measurement(**changed: float) -> Measurement:
    return parse_measurement(json.dumps(LATENCY | changed))


def test_figures_follow_from_what_the_load_printed():
    measured = measurement(requests=1000)

    assert measured.records_per_s == 500.0
    assert measured.server_cpu_s_per_million == 250.0
    assert measured.server_cpu_us_per_request == 500.0


def test_what_a_load_does_not_measure_is_not_a_number():
    measured = parse_measurement('{"load": "consume", "records": 10, "seconds": 1.0, "client_cpu_s": 0.1}')

    assert math.isnan(measured.p50_ms)
    assert math.isnan(measured.server_cpu_s)


def test_the_steps_of_a_group_are_told_by_name():
    measured = parse_measurement(
        '{"seconds": 1.0, "steps_ms": {"join": 40.0, "sync": 20.0}, "groups": 5, "server_cpu_s": 2.0, "client_cpu_s": 0.1}'
    )

    assert measured.steps_ms == {"join": 40.0, "sync": 20.0}
    assert measured.server_cpu_ms_per_group == 400.0


def test_every_load_has_a_name_of_its_own():
    assert len(set(NAMES)) == len(NAMES)


@each_case("load", [*LOADS, *TLS_LOADS], ids=lambda load: load.name)
def test_a_quick_run_is_smaller_than_a_full_one(load: Load):
    assert load.quick_count < load.count


@each_case("load", [*LOADS, *TLS_LOADS], ids=lambda load: load.name)
def test_the_count_is_the_last_argument_of_a_load(load: Load):
    assert load.arguments_for(7)[-1] == f"{load.count_flag}=7"


@pytest.mark.parametrize(("higher_is_better", "best"), [(True, 1000.0), (False, 500.0)])
def test_of_several_runs_a_figure_is_taken_at_its_best(higher_is_better: bool, best: float):
    runs = [measurement(seconds=4.0), measurement(seconds=2.0)]

    assert Measure("records/s", lambda run: run.records_per_s, higher_is_better=higher_is_better).of(runs) == best


def test_a_p99_is_the_median_of_its_runs():
    measures = [measure for load in LOADS for measure in load.measures if "p99" in measure.name]

    assert measures
    for measure in measures:
        assert measure.of([measurement(p99_ms=figure) for figure in (9.0, 1.0, 2.0)]) == 2.0


def test_throughput_is_better_when_higher_and_everything_else_when_lower():
    measures = {(measure.name, measure.higher_is_better) for load in LOADS for measure in load.measures}

    throughputs = {"records/s", "requests/s", "transactions/s"}
    assert {name for name, higher_is_better in measures if higher_is_better} == throughputs
    assert not {name for name, higher_is_better in measures if not higher_is_better} & throughputs


def test_only_the_named_benchmarks_and_brokers_are_chosen():
    chosen = parse_arguments(["--only", "start", "latency", "--brokers", "odradek"])

    assert chosen.only == ["start", "latency"]
    assert chosen.brokers == ["odradek"]


@pytest.mark.parametrize("arguments", [["--only", "nothing"], ["--brokers", "rabbit"]])
def test_an_unknown_name_ends_the_command(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        parse_arguments(arguments)

    assert left.value.code == 2
    assert arguments[1] in capsys.readouterr().err


def test_kafka_is_one_node_that_is_broker_and_controller():
    lines = server_properties(Path("/data"), 1001, 1002, {"log.segment.delete.delay.ms": "5"}).splitlines()

    assert "process.roles=broker,controller" in lines
    assert "controller.quorum.voters=1@127.0.0.1:1002" in lines
    assert "listeners=PLAINTEXT://127.0.0.1:1001,CONTROLLER://127.0.0.1:1002" in lines
    assert "log.segment.delete.delay.ms=5" in lines


def test_no_broker_waits_for_more_members_of_a_group():
    assert {UNDER_LOAD[name]["group.initial.rebalance.delay.ms"] for name in ("odradek", "kafka")} == {"0"}


def test_a_load_is_told_whose_cpu_time_to_read():
    assert "-pid=17,18" in command("produce", "127.0.0.1:1", server_pids=(17, 18))


def test_a_broker_that_is_given_a_key_store_has_an_ssl_listener(tmp_path: Path):
    settings, [flag] = certificates(tmp_path / "certificates")
    text = server_properties(tmp_path, 1, 2, settings)

    assert "listeners=SSL://127.0.0.1:1,CONTROLLER://127.0.0.1:2\n" in text
    assert "inter.broker.listener.name=SSL\n" in text
    assert Path(settings["ssl.keystore.location"]).exists()
    assert Path(flag.removeprefix("-ca=")).exists()


def test_a_load_by_tls_says_so_and_another_does_not():
    load = replace(TLS_LOADS[0], security=("-ca=ca.pem",))

    assert "-ca=ca.pem" in load.arguments_for(7)
    assert not any("-ca" in argument for load in LOADS for argument in load.arguments_for(7))
