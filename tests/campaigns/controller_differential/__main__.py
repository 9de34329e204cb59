"""Runs the campaign: ``python -m tests.campaigns.controller_differential --histories 10 --steps 150``."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.campaigns.controller_differential.history import Difference, History, Stalled
from tests.campaigns.controller_differential.sides import SESSION_MS, Kafkas, Ours
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.controller.quorum.real_quorum import RealQuorum

SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "metadata.max.idle.interval.ms": "0",
}


async def compare(scratch: Path, seed: int, steps: int, *, passes_time: bool = True) -> History:
    """The history that both controllers agreed on. Raises Difference, whose notes are its last steps; Stalled.

    Without ``passes_time`` no session ends.
    """
    session_ms = SESSION_MS if passes_time else 3_600_000
    controllers = KafkaControllers(scratch, 1, SETTINGS | {"broker.session.timeout.ms": str(session_ms)})
    try:
        controllers.start()
        quorum = RealQuorum(controllers)
        await quorum.active()
        kafkas = Kafkas(quorum)
        history = History(Ours(session_ms), kafkas, seed, passes_time=passes_time)
        await kafkas.follow()
        try:
            await history.run(steps, has_elr=seed % 2 == 1)
        except Difference as difference:
            difference.add_note("\n".join(history.trace[-25:]))
            raise
        finally:
            quorum.close()
        return history
    finally:
        controllers.close()


def main() -> int:
    """0 where the controllers did not differ."""
    parser = argparse.ArgumentParser(prog="controller-differential", description=__doc__)
    parser.add_argument("--histories", type=int, default=10)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    counts: dict[str, int] = {}
    stalled = differences = 0
    for seed in range(chosen.seed, chosen.seed + chosen.histories):
        with tempfile.TemporaryDirectory(prefix="odradek-controllers") as scratch:
            try:
                history = asyncio.run(compare(Path(scratch) / "controllers", seed, chosen.steps))
            except Stalled:
                stalled += 1
                continue
            except Difference as difference:
                differences += 1
                print(f"seed {seed}: {difference}\n{difference.__notes__[0]}", flush=True)
                continue
        for step, count in history.counts.items():
            counts[step] = counts.get(step, 0) + count
        print(f"seed {seed}: {len(history.trace)} requests, no difference", flush=True)
    print(f"{chosen.histories} histories, differences {differences}, given up as too slow {stalled}; steps: {counts}", flush=True)
    return 0 if not differences and stalled < chosen.histories else 1


if __name__ == "__main__":
    sys.exit(main())
