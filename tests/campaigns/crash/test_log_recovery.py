"""A process that appends is killed at any moment: every append that it reported is there, in order, once."""

import random
import subprocess
import sys

import pytest

from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log import Log
from odradek.storage.log_config import LogConfig

CONFIG = LogConfig(segment_bytes=200_000)

APPENDER = """
import sys
from odradek.protocol.records import Record, build_batch
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log import Log
from odradek.storage.log_config import LogConfig

log = Log.open(
    RealFileSystem(), sys.argv[1], "t", 0, LogConfig(segment_bytes=200_000), clean=False, now_ms=1, warn=lambda *_, **__: None
)
number = log.log_end_offset
while True:
    records = [Record(timestamp=1, value=b"%d" % (number + i) + b"x" * (number % 700)) for i in range(3)]
    log.append(build_batch(records), leader_epoch=0, now_ms=1)
    number += 3
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("seed", range(3))
def test_what_was_appended_before_a_kill_is_there_in_order_once(tmp_path, seed):
    directory = str(tmp_path / "t-0")
    acknowledged = 0
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", APPENDER, directory], stdout=subprocess.PIPE, text=True)
        for _ in range(random.Random(seed).randrange(1, 600)):
            acknowledged = int(process.stdout.readline())
        process.kill()
        rest, _ = process.communicate()
        whole_lines = rest.split("\n")[:-1]
        acknowledged = int(whole_lines[-1]) if whole_lines else acknowledged
        values = list(recovered_values(directory))
        assert len(values) >= acknowledged
        assert values == list(range(len(values)))


def recovered_values(directory):
    log = Log.open(RealFileSystem(), directory, "t", 0, CONFIG, clean=False, now_ms=1, warn=lambda *_, **__: None)
    offset = 0
    while (found := log.read(offset, 1 << 20, upper_offset=log.log_end_offset, min_one_batch=True)) is not None:
        data = found.read()
        for position, header in iter_batches(data):
            offset = header.next_offset
            yield from (int(record.value.rstrip(b"x")) for record in read_records(data, position))
    log.close(clean=False, now_ms=1)
