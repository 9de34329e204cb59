"""README's examples run, its terminal shows what happens, and its comparison has the figures that were measured."""

import re
import subprocess
import sys
from xml.etree import ElementTree as ET

from benchmarks.ports import free_ports
from benchmarks.summary import HEADER
from tests.broker_process import REPOSITORY, command_environment
from tests.project.documents import DOCS, README, code_blocks, table
from tests.project.test_tools import tool

RECORDING = DOCS / "terminal.svg"
recorder = tool("record_terminal")


def test_the_first_lines_bring_a_record_to_a_consumer(tmp_path):
    [block] = code_blocks(README, "sh")
    install, *commands = block.splitlines()
    assert "pip install . kafka-python" in install
    [port] = free_ports(1)
    steps = list(recorder.run(commands, tmp_path, port))
    assert [step.output for step in steps] == [("odradek ready on 127.0.0.1:9092",), (), ("b'12 books'",)]


def test_the_recording_is_of_its_commands_as_they_run_today(tmp_path):
    steps = list(recorder.run(recorder.COMMANDS, tmp_path, recorder.free_port()))
    assert recorder.render(steps) == RECORDING.read_text(), "run tools/record_terminal.py again"


def test_the_recording_names_its_commands_and_says_that_it_is_generated():
    text = RECORDING.read_text()
    assert text.splitlines()[0] == recorder.GENERATED
    elements = ET.fromstring(text)
    namespace = "{http://www.w3.org/2000/svg}"
    assert elements.findtext(f"{namespace}desc").splitlines() == list(recorder.COMMANDS)
    shown = "".join(each.text for each in elements.iter(f"{namespace}text") if each.get("class") == "command")
    assert shown == "".join(recorder.PROMPT + command for command in recorder.COMMANDS) + recorder.PROMPT
    assert not re.search(r"<script|href|url\(|@import", text)


def test_the_recording_is_over_when_the_last_frame_has_been_seen():
    lines = recorder.timed([recorder.Step(command, ("a line",)) for command in recorder.COMMANDS])
    assert [line.shown_s for line in lines] == sorted(line.shown_s for line in lines)
    assert round(lines[-1].shown_s + recorder.LAST_FRAME_S, 6) == recorder.LENGTH_S == 20


def test_the_example_of_a_test_passes(tmp_path):
    [example] = code_blocks(README, "python")
    (tmp_path / "test_orders.py").write_text(example)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "odradek.testing.pytest_plugin", f"--basetemp={tmp_path}/pytest"]
    environment = command_environment() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False, env=environment)
    assert "\n1 passed" in done.stdout, done.stdout + done.stderr


def comparison():
    header = next(line for line in README.read_text().splitlines() if line.startswith("| what | odradek |"))
    return {row["what"]: row for row in table(README, *(title.strip() for title in header.strip("|").split("|")))}


def test_the_comparison_has_the_figures_that_were_measured():
    compared = comparison()
    figures = {row["figure"]: row for row in table(README, *HEADER)}
    for what, figure in (
        ("start to first record: s", "start, to the first record produced and fetched: s"),
        ("memory when idle: MiB", "memory when idle: MiB"),
        ("records of 100 B produced: 1/s", "produce, records of 100 B in large batches: records/s"),
    ):
        measured = figures[figure]
        assert (compared[what]["odradek"], compared[what]["Kafka in Docker"]) == (measured["odradek"], measured[HEADER[1]])
    fixtures = (REPOSITORY / "benchmarks" / "README.md").read_text()
    medians = dict(re.findall(r"^\| ([^|]+?) \| ([\d.,]+) \|", fixtures, re.MULTILINE))
    told = compared["a broker for one test: ms"]
    assert told["odradek"] == medians["odradek, in the test's process"]
    assert told["Kafka in Docker"] == next(median for row, median in medians.items() if row.startswith("Apache Kafka "))
    assert told["kfake"] == medians["kfake, in a Go test (100; 20 in parallel)"]


def test_every_source_that_is_named_is_given_and_every_given_one_is_named():
    text = README.read_text()
    assert set(re.findall(r"\]\[([^]]+)\]", text)) == set(re.findall(r"^\[([^]]+)\]: https://", text, re.MULTILINE))


def test_what_others_do_has_a_source_unless_it_was_tried_here():
    tried_here = ("what", "odradek", "Kafka in Docker")
    for what, row in comparison().items():
        for product, cell in row.items():
            assert product in tried_here or not cell or "][" in cell or (what, product) == ("a broker for one test: ms", "kfake")
