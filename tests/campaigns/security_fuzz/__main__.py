"""Odd frames and records to whatever lets clients in, half-open handshakes, and a search for secrets.

    python -m tests.campaigns.security_fuzz --sasl 750000 --tls 200000 --live 50000 --half-open 10000 --seed 1

SASL frames go to the state machine, TLS records to the broker's end of a connection, both to the listeners of a live broker,
beside a client without security and one by SASL_SSL. There may be no exception, no growth and nobody let in; the clients are
unharmed. Then no secret is found in the broker's log, metrics and described configs.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.campaigns.fuzz.frames import memory_kib
from tests.campaigns.security_fuzz import at_doors, in_process
from tests.campaigns.security_fuzz.doors import AtWork, Doors, doors

_WARM_UP_FRAMES = 400
_WAVES_BEFORE = 2


def run(sasl: int, tls: int, live: int, half_open: int, seed: int) -> None:
    """All of it, with a report on stdout. Raises Failure and AssertionError."""
    _tell(in_process.sasl_frames(seed, sasl) + in_process.tls_records(seed, tls))
    with tempfile.TemporaryDirectory() as directory, doors(Path(directory)) as at, AtWork(at) as work:
        _tell(asyncio.run(_at_live_ones(at, work, live, half_open, seed)))
        print(f"{at_doors.check_log(at):>10}  lines of the broker's log, unhandled exceptions 0")
        print(f"{at_doors.check_secrets(at):>10}  characters searched for {len(at.secrets())} secrets, found 0")
        print(f"clients: {work.check()}")


async def _at_live_ones(at: Doors, work: AtWork, live: int, half_open: int, seed: int) -> Counter[str]:
    before = await asyncio.to_thread(_sockets_at_rest, at, work)
    # What the allocator keeps of as many handshakes is no growth.
    await at_doors.odd_clients(at, seed + 1, min(live, _WARM_UP_FRAMES))
    for _ in range(_WAVES_BEFORE):
        await _wave(at, work, half_open, before)
    before_kib = memory_kib(at.broker.pid)
    outcomes = await at_doors.odd_clients(at, seed, live)
    held_kib = await _wave(at, work, half_open, before)
    print(f"{half_open:>10}  half-open handshakes at once, the broker at {held_kib} KiB meanwhile")
    print(at_doors.check_memory(at, before_kib))
    return outcomes


def _sockets_at_rest(at: Doors, work: AtWork) -> int:
    work.wait_for_more()
    return at_doors.sockets(at)


async def _wave(at: Doors, work: AtWork, half_open: int, before: int) -> int:
    held_kib = await at_doors.half_open(at, half_open, work)
    await asyncio.to_thread(at_doors.wait_until_alone, at, before)
    return held_kib


def _tell(outcomes: Counter[str]) -> None:
    for name, count in sorted(outcomes.items()):
        print(f"{count:>10}  {name}", flush=True)


def main() -> int:
    """1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sasl", type=int, default=750_000, help="frames to the state machine")
    parser.add_argument("--tls", type=int, default=200_000, help="records to a connection's end")
    parser.add_argument("--live", type=int, default=50_000, help="frames and records to a live broker")
    parser.add_argument("--half-open", type=int, default=10_000, help="handshakes that are begun and held")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    chosen = parser.parse_args()
    started = time.perf_counter()
    try:
        run(chosen.sasl, chosen.tls, chosen.live, chosen.half_open, chosen.seed)
    except (in_process.Failure, AssertionError):
        traceback.print_exc()
        print(f"failures 1; again with --seed {chosen.seed}", file=sys.stderr)
        return 1
    total = chosen.sasl + chosen.tls + chosen.live
    print(f"{total} frames and records, seed {chosen.seed}, failures 0, {time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
