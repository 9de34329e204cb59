"""``odradek serve`` that tells how many tasks it has when it gets SIGUSR1, and that may have a fault the campaign must find.

    python -m tests.campaigns.cluster_chaos.watched_broker FAULT serve ...

FAULT is a name of ``faults``, or ``-``.
"""

import asyncio
import signal
import sys

from odradek.__main__ import start
from tests.campaigns.planted import plant

TASKS = "tasks: "


def main() -> None:
    """Put the fault in, then run the command."""
    fault = sys.argv.pop(1)
    if fault != "-":
        plant("tests.campaigns.cluster_chaos.faults", fault)
    signal.signal(signal.SIGUSR1, lambda *_: print(f"{TASKS}{len(asyncio.all_tasks())}", file=sys.stderr, flush=True))
    start()


if __name__ == "__main__":
    main()
