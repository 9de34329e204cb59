"""The ``odradek`` command with nodes that do next to nothing: they say that they are ready, and end when they are told to.

A node writes what it does to ``STAND_IN_DIARY``. Settings steer it: ``stand.in.fails`` names nodes that do not start,
``stand.in.stays`` nodes that do not end when they are told to, ``stand.in.hangs`` nodes whose second start gets nowhere.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from odradek.cli.local_cluster import forked, supervisor
from odradek.cli.main import main


def stand_in(options):
    settings, data_dir = options.settings, options.data_dir
    node_id = settings["node.id"]
    data_dir.mkdir(exist_ok=True)
    if node_id in settings.get("stand.in.fails", "").split(","):
        print("odradek: the disk is on fire", file=sys.stderr)
        return 2
    # A handler that set an event might interrupt the wait for it where that holds the event's lock, and wait for ever.
    told, tells = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(tells, b"."))
    hangs = node_id in settings.get("stand.in.hangs", "").split(",") and f"{node_id} starts" in diary().read_text()
    note(f"{node_id} starts")
    if not hangs:
        print("odradek ready on somewhere", flush=True)
    os.read(told, 1)
    if node_id in settings.get("stand.in.stays", "").split(","):
        threading.Event().wait()
    note(f"{node_id} ends")
    return 0


def diary():
    path = Path(os.environ["STAND_IN_DIARY"])
    path.touch()
    return path


def note(line):
    with diary().open("a", encoding="ascii") as lines:
        lines.write(f"{line}\n")


if __name__ == "__main__":
    forked.run = stand_in
    supervisor.known_to = lambda _: set(range(200))
    main()
