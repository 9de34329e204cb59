"""Hostile requests to a real broker: ``python -m tests.campaigns.hostile_requests --requests 10000``.

Requests are drawn from a seed (``kinds``): valid and huge, lying, or small and laborious. After each, a second client says how
long its worst answer took, and the system how much memory the broker took. A run fails over ``--stall-ms``, unless the client
saw half as much in quiet, and over twenty times a request's size (72 MiB for small ones).
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.campaigns.hostile_requests.cluster import KNOWN, PARTITIONS
from tests.campaigns.hostile_requests.kinds import KINDS
from tests.campaigns.hostile_requests.run import MEBIBYTE, Outcome, Run, told
from tests.campaigns.hostile_requests.second_client import SecondClient

_CONTROL_S = 5.0
_SHOWN = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if a request stopped the second client, or took too much memory."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.hostile_requests", description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first request")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--stall-ms", type=float, default=50, help="what a second client may wait for an answer")
    parser.add_argument("--kinds", action="append", default=[], choices=KINDS, help="only these")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="of the large topic that requests find")
    parser.add_argument("--minutes", type=float, default=600, help="draw no more after so many")
    parser.add_argument("--control-s", type=float, default=_CONTROL_S, help="how long to measure without hostile requests")
    chosen = parser.parse_args(arguments)
    command = f"python -m tests.campaigns.hostile_requests --seed {chosen.seed}"
    with tempfile.TemporaryDirectory() as directory:
        settings = {"auto.create.topics.enable": "true", "offsets.topic.num.partitions": 10}
        with BrokerProcess(Path(directory) / "data", settings=settings) as broker:
            run = Run(broker, chosen.partitions)
            with SecondClient(broker.port, broker.pid, KNOWN, Path(directory)) as second:
                control = run.control(second, chosen.control_s)
                print(
                    f"without hostile requests: {control.broker_ms:.0f} ms ({control.wall_ms:.0f} with waits for the machine)",
                    flush=True,
                )
                limit_ms = max(chosen.stall_ms, 2 * control.broker_ms)
                numbers = range(chosen.first, chosen.first + chosen.requests)
                until_s = time.monotonic() + 60 * chosen.minutes
                shown = _shown(run, second, chosen.seed, numbers, tuple(chosen.kinds), limit_ms)
                outcomes = list(takewhile(lambda _: time.monotonic() < until_s, shown))
            assert "Traceback" not in broker.stderr, broker.stderr
            # How it stops with all these partitions is not the question.
            broker.kill9()
    failed = [outcome for outcome in outcomes if _fails(outcome, limit_ms)]
    print(f"seed {chosen.seed}: {len(outcomes)} requests, {sum(each.size_bytes for each in outcomes) / 1e9:.1f} GB")
    print(f"answered {sum(each.answered > 0 for each in outcomes)}, closed {sum(not each.answered for each in outcomes)}")
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        print(f"{kind}: {_worst([outcome for outcome in outcomes if outcome.kind == kind])}")
    print("the longest stalls:")
    for outcome in sorted(outcomes, key=lambda each: -each.stall.broker_ms)[:_SHOWN]:
        print(f"  {told(outcome)}")
    print("the most memory:")
    for outcome in sorted(outcomes, key=lambda each: -each.times)[:_SHOWN]:
        print(f"  {told(outcome)}")
    print(f"over {limit_ms:.0f} ms, or over the memory allowed: {len(failed)}")
    for outcome in failed[:_SHOWN]:
        print(f"again: {command} --first {outcome.number} --requests 1", file=sys.stderr)
    return int(bool(failed))


def _worst(outcomes: Sequence[Outcome]) -> str:
    stall = max(outcomes, key=lambda each: each.stall.broker_ms)
    memory = max(outcomes, key=lambda each: each.times)
    return (
        f"{len(outcomes)} requests; stall {stall.stall.broker_ms:.0f} ms ({stall.told});"
        f" memory +{memory.grown_bytes / MEBIBYTE:.0f} MiB for {memory.size_bytes / MEBIBYTE:.1f} MiB ({memory.told})"
    )


def _fails(outcome: Outcome, limit_ms: float) -> bool:
    return outcome.stall.broker_ms > limit_ms or outcome.times > 1


def _shown(
    run: Run, second: SecondClient, seed: int, numbers: range, kinds: tuple[str, ...], limit_ms: float
) -> Iterator[Outcome]:
    for outcome in run.outcomes(second, seed, numbers, kinds):
        if _fails(outcome, limit_ms):
            print(f"FAILED {told(outcome)}", flush=True)
        yield outcome


if __name__ == "__main__":
    sys.exit(main())
