"""README's table of what was measured: its rows are figures of the benchmarks, and pasting fills it."""

import json
import os

from benchmarks.kafka_jars import VERSION
from benchmarks.processes import Memory
from benchmarks.report import Figure, as_json
from benchmarks.scenarios import LOADS, START_TITLE
from benchmarks.start_up import Start, figures
from benchmarks.summary import HEADER, ROWS, main, markdown
from tests.project.documents import README, table


def test_every_row_is_a_figure_of_the_benchmarks():
    measured = {(load.title, measure.name) for load in LOADS for measure in load.measures}
    measured |= {(figure.title, figure.measure) for figure in figures({"odradek": [Start(0.1, Memory(1, 1), 0.0)]})}
    assert [row[:2] for row in ROWS if row[:2] not in measured] == []


def test_readmes_table_has_these_rows():
    told = [row["figure"] for row in table(README, *HEADER)]
    assert told == [name for _, _, name in ROWS]


def test_kafkas_column_is_of_the_compiled_run_and_what_was_not_measured_is_a_dash():
    compiled = as_json([Figure("produce 100 B", "records/s", {"odradek": 3e6, "kafka": 1e6})])
    interpreted = as_json([Figure("produce 100 B", "records/s", {"odradek": 2e6, "kafka": 9e6})])
    lines = markdown(compiled, interpreted, "2026-01-02").splitlines()
    assert lines[0] == f"Measured on 2026-01-02, with Apache Kafka {VERSION}:"
    assert "| produce, records of 100 B in large batches: records/s | 1 M | 2 M | 3 M |" in lines
    assert "| consume the same: records/s | - | - | - |" in lines


def test_the_date_is_the_first_files(tmp_path, capsys):
    paths = [tmp_path / name for name in ("compiled.json", "interpreted.json")]
    for path in paths:
        path.write_text(json.dumps(as_json([Figure(START_TITLE, "spawn to first record s", {"odradek": 0.25})])))
    os.utime(paths[0], (1_700_000_000, 1_700_000_000))
    assert main([str(path) for path in paths]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Measured on 2023-11-14, with Apache Kafka")
    assert "| - | 0.25 | 0.25 |" in told


def test_without_files_the_usage_is_told(capsys):
    assert main([]) == 2
    assert "python -m benchmarks.summary" in capsys.readouterr().err
