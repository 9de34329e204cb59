"""What the machine does to a process that shares it with the broker: the worst write of a file, and how slow its processors are.

A write is what a partition's creation and deletion ask of the file system. All of it waits where others sync much.

    python -m tests.campaigns.hostile_requests.machine DIRECTORY

For each line of input it prints two numbers, of the time since the last one: how long the worst write took in milliseconds, waits
for a processor left out; and how many times its quickest a short computation has taken, in the middle.
"""

import os
import select
import statistics
import sys
import time
from pathlib import Path

from tests.campaigns.hostile_requests.second_client import scheduled_s

_PAUSE_S = 0.02
_STEPS = 20_000


def _compute_s() -> float:
    began_s = time.thread_time()
    for _ in range(_STEPS):
        pass
    return time.thread_time() - began_s


def _write_s(path: Path) -> float:
    """A new directory with a file, synced, renamed and removed, as those of a partition are."""
    began_s, waited_s = time.perf_counter(), scheduled_s("self")[1]
    path.mkdir()
    file = os.open(path / "log", os.O_WRONLY | os.O_CREAT)
    try:
        os.write(file, b"odradek")
        os.fdatasync(file)
    finally:
        os.close(file)
        renamed = path.rename(path.with_suffix(".deleted"))
        (renamed / "log").unlink()
        renamed.rmdir()
    return time.perf_counter() - began_s - (scheduled_s("self")[1] - waited_s)


def main(directory: Path) -> None:
    """Until the input ends."""
    quickest_s = min(_compute_s() for _ in range(20))
    computed_s: list[float] = []
    worst_s = 0.0
    while True:
        computed_s.append(_compute_s())
        quickest_s = min(quickest_s, computed_s[-1])
        worst_s = max(worst_s, _write_s(directory / f"machine-{os.getpid()}"))
        if select.select([sys.stdin], [], [], _PAUSE_S)[0]:
            if not sys.stdin.readline():
                return
            print(1000 * worst_s, statistics.median(computed_s) / quickest_s, flush=True)
            computed_s, worst_s = [], 0.0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
