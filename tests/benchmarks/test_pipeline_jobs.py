"""The process that runs the pipeline's jobs for its benchmark: it ends with the benchmark, whatever ends that."""

import os
import subprocess
import sys

import pytest

from benchmarks.pipeline import __main__ as bench

STARTS = 'print(\'{"job": "start", "seconds": 1.5}\', flush=True)'
WORKS_FOR_EVER = "import threading; threading.Event().wait()"
READS_JOBS = "import sys; sys.stdin.read()"


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Makes a context manager whose process runs this program."""
    popen = subprocess.Popen

    def make(*lines):
        monkeypatch.setattr(
            subprocess, "Popen", lambda _command, **pipes: popen([sys.executable, "-c", "\n".join(lines)], **pipes)
        )
        return bench._Started("127.0.0.1:9092", os.getpid(), tmp_path / "warehouse", "local[2]")

    return make


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_ends_a_job_that_is_under_way(start, interruption):
    started = start(STARTS, WORKS_FOR_EVER)
    with pytest.raises(interruption), started:
        raise interruption
    assert started._process.poll() is not None


def test_a_process_that_does_not_start_its_spark_is_ended(start):
    started = start("print('null', flush=True)", WORKS_FOR_EVER)
    with pytest.raises(AssertionError), started:
        pytest.fail("it has not started")
    assert started._process.poll() is not None


def test_after_its_jobs_the_process_ends_by_itself(start):
    with start(STARTS, READS_JOBS) as started:
        assert started.run.seconds["start"] == 1.5
    assert started._process.returncode == 0
