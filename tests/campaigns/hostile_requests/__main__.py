"""Hostile requests to a real broker: ``python -m tests.campaigns.hostile_requests --requests 10000``.

Requests are drawn from a seed (``kinds``): valid and huge, lying, small and laborious or with a large answer, floods of them, and
readers that take no answers. After each, a second client says how long its worst answer took, and the system how much memory the
broker took and kept. A run fails over ``--stall-ms``, unless the client saw half as much in quiet, over twenty times a request's
size (72 MiB for small ones; large answers may have 128 MiB more), and if 72 MiB are left of one, or 512 MiB of all.

``--only NAME`` is one scenario on a broker of its own instead (``amplified``), and a line about it.
"""

import argparse
import random
import sys
import time
from collections.abc import Sequence
from itertools import takewhile

from tests.campaigns.hostile_requests import found
from tests.campaigns.hostile_requests.amplified import SCENARIOS
from tests.campaigns.hostile_requests.brokers import BROKERS, started, thrown
from tests.campaigns.hostile_requests.cluster import KNOWN, PARTITIONS, set_up, set_up_known
from tests.campaigns.hostile_requests.kinds import KINDS
from tests.campaigns.hostile_requests.run import ALL_LEFT_BYTES, MEBIBYTE, BrokerGone, Outcome, Run, row, told
from tests.campaigns.hostile_requests.second_client import SecondClient, Stall

_CONTROL_S = 5.0
_SHOWN = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if a request stopped the second client, or took or kept too much memory, or ended the broker."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.hostile_requests", description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first request")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--stall-ms", type=float, default=50, help="what a second client may wait for an answer")
    parser.add_argument("--kinds", action="append", default=[], choices=KINDS, help="only these")
    parser.add_argument("--only", action="append", default=[], choices=[*SCENARIOS, "all"], metavar="NAME", help="a scenario")
    parser.add_argument("--list", action="store_true", help="the names of the scenarios")
    parser.add_argument("--broker", choices=BROKERS, default="odradek", help="of a scenario")
    parser.add_argument("--lasts-s", type=float, help="how long a flood or slow readers of a scenario go on")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="of the large topic that requests find")
    parser.add_argument("--minutes", type=float, default=600, help="draw no more after so many")
    parser.add_argument("--control-s", type=float, default=_CONTROL_S, help="how long to measure without hostile requests")
    parser.add_argument("--broker-mib", type=int, default=6_000, help="the broker may have no more memory")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        print(*SCENARIOS, sep="\n")
        return 0
    if chosen.only:
        names = list(SCENARIOS) if "all" in chosen.only else chosen.only
        return max([_run_scenario(name, chosen) for name in names])
    return _draw(chosen)


def _run_scenario(name: str, chosen: argparse.Namespace) -> int:
    """Run it on a broker of its own, and print its row."""
    hostile = SCENARIOS[name]()
    if chosen.lasts_s is not None:
        hostile = hostile._replace(lasts_s=chosen.lasts_s)
    settings = found.SETTINGS | (found.ACL_SETTINGS if hostile.needs == found.ACLS else {})
    with started(chosen.broker, settings, chosen.broker_mib) as (broker, directory):
        set_up_known(broker.host, broker.port)
        with SecondClient(broker.port, broker.pid, KNOWN, directory) as second:
            run = Run(broker, second)
            run.make(hostile)
            limit_ms = _limit_ms(run.control(chosen.control_s), chosen)
            try:
                outcome = run.outcome(0, name, hostile)
            except BrokerGone as gone:
                print(f"FAILED {name}: {gone}", flush=True)
                return 1
        exception = ", an exception in the broker's log" if thrown(broker) else ""
    is_failed = _fails(outcome, limit_ms) or bool(exception)
    print(f"{'FAILED ' if is_failed else ''}{row(outcome, limit_ms)}{exception}", flush=True)
    return int(is_failed)


def _draw(chosen: argparse.Namespace) -> int:
    """Send what is drawn to one broker, and print the worst of it by kind."""
    command = f"python -m tests.campaigns.hostile_requests --seed {chosen.seed}"
    with started("odradek", found.SETTINGS, chosen.broker_mib) as (broker, directory):
        set_up(broker.host, broker.port, chosen.partitions)
        with SecondClient(broker.port, broker.pid, KNOWN, directory) as second:
            run = Run(broker, second)
            control = run.control(chosen.control_s)
            print(
                f"without hostile requests: {control.broker_ms:.0f} ms ({control.wall_ms:.0f} with waits for the machine)",
                flush=True,
            )
            limit_ms = _limit_ms(control, chosen)
            numbers = range(chosen.first, chosen.first + chosen.requests)
            until_s = time.monotonic() + 60 * chosen.minutes
            outcomes: list[Outcome] = []
            try:
                for outcome in takewhile(
                    lambda _: time.monotonic() < until_s, run.outcomes(chosen.seed, numbers, tuple(chosen.kinds))
                ):
                    outcomes.append(outcome)
                    if _fails(outcome, limit_ms):
                        print(f"FAILED {told(outcome)}", flush=True)
                left_bytes = run.left_bytes()
            except BrokerGone as gone:
                number = chosen.first + len(outcomes)
                print(f"FAILED #{number}: {gone}\nagain: {command} --first {number} --requests 1", file=sys.stderr)
                return 1
        assert not thrown(broker), thrown(broker)
    _report(chosen.seed, outcomes)
    failed = [outcome for outcome in outcomes if _fails(outcome, limit_ms)]
    print(f"left of all: {left_bytes / MEBIBYTE:+.0f} MiB")
    print(f"over {limit_ms:.0f} ms, or over the memory allowed: {len(failed)}")
    for outcome in failed[:_SHOWN]:
        print(f"again: {command} --first {outcome.number} --requests 1", file=sys.stderr)
    return int(bool(failed) or left_bytes > ALL_LEFT_BYTES)


def _report(seed: int, outcomes: Sequence[Outcome]) -> None:
    """Print the worst of each kind, and of all."""
    print(f"seed {seed}: {len(outcomes)} requests, {sum(each.size_bytes for each in outcomes) / 1e9:.1f} GB")
    closed = sum(each.fate.closed > 0 for each in outcomes)
    print(f"answered {len(outcomes) - closed}, closed {closed}, {sum(each.fate.answer_bytes for each in outcomes) / 1e9:.1f} GB")
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        print(f"{kind}: {_worst([outcome for outcome in outcomes if outcome.kind == kind])}")
    print("the longest stalls:")
    for outcome in sorted(outcomes, key=lambda each: -each.stall.broker_ms)[:_SHOWN]:
        print(f"  {told(outcome)}")
    print("the most memory:")
    for outcome in sorted(outcomes, key=lambda each: -each.times)[:_SHOWN]:
        print(f"  {told(outcome)}")
    print(f"the broker's peak: {max(each.peak_bytes for each in outcomes) / MEBIBYTE:.0f} MiB")


def _limit_ms(control: Stall, chosen: argparse.Namespace) -> float:
    """What an answer may take the second client: more on a machine that is slow without hostile requests."""
    return max(float(chosen.stall_ms), 2 * control.broker_ms)


def _worst(outcomes: Sequence[Outcome]) -> str:
    stall = max(outcomes, key=lambda each: each.stall.broker_ms)
    memory = max(outcomes, key=lambda each: each.times)
    return (
        f"{len(outcomes)} requests; stall {stall.stall.broker_ms:.0f} ms ({stall.told});"
        f" memory +{memory.grown_bytes / MEBIBYTE:.0f} MiB for {memory.size_bytes / MEBIBYTE:.1f} MiB,"
        f" left {memory.left_bytes / MEBIBYTE:+.0f} MiB ({memory.told})"
    )


def _fails(outcome: Outcome, limit_ms: float) -> bool:
    return outcome.stall.broker_ms > limit_ms or outcome.times > 1 or outcome.fate.is_silent


if __name__ == "__main__":
    sys.exit(main())
