"""What the harness reads from /proc."""

import os

import pytest

from benchmarks.processes import cpu_seconds_of, memory_of, parse_smaps_rollup, parse_stat_cpu_ticks

ROLLUP = """\
55d0c8a2c000-7ffd1f5f2000 ---p 00000000 00:00 0                          [rollup]
Rss:               20480 kB
Pss:               10240 kB
Pss_Anon:           8192 kB
Locked:                0 kB
"""


def test_memory_is_told_in_mebibytes():
    memory = parse_smaps_rollup(ROLLUP)

    assert (memory.pss_mib, memory.rss_mib) == (10.0, 20.0)


@pytest.mark.parametrize("name", ["java", "a b", "odd) (name"])
def test_cpu_time_is_user_plus_system_whatever_the_command_is_called(name: str):
    stat = f"17 ({name}) S 1 17 17 0 -1 4194560 900 0 1 0 250 70 3 4 20 0 9 0 1234 56 78"

    assert parse_stat_cpu_ticks(stat) == 320


def test_a_live_process_can_be_read():
    assert memory_of(os.getpid()).pss_mib > 1
    assert cpu_seconds_of(os.getpid()) > 0
