"""See the package. ``--slices``, ``--seeds`` and ``--only`` choose scripts; ``--record`` keeps Kafka's answers.

The exit status is 1 if a difference has no row in docs/differences-all.md, if a row is about none, or if a planted fault is
missed.
"""

import argparse
import fnmatch
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.cluster.clusters import KafkaCluster, OdradekCluster
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns
from tests.campaigns.wire_differential.cases.every import SLICES, every, warm_up
from tests.campaigns.wire_differential.clusters import SPREADS_S, STORIES, internal_topics, serving
from tests.campaigns.wire_differential.compare import Difference, Named, differences, named, unnamed
from tests.campaigns.wire_differential.driver import Driver, Transcript
from tests.campaigns.wire_differential.faulty import FAULTS, faulty
from tests.campaigns.wire_differential.recording import read, short, write
from tests.campaigns.wire_differential.script import Script
from tests.campaigns.wire_differential.settings import OF_KAFKA, SETTINGS

# How long Kafka is waited for, and how long when its answers are kept.
_SETTLE_S, _SETTLE_TO_RECORD_S = 0.04, 0.15
_QUIET_S, _QUIET_TO_RECORD_S = 0.12, 0.5
# Kafka draws a new leader of a group from those that wait: what differs by chance may do so a few times.
_CONFIRMATIONS = 15
_RECORDINGS = 2


def main() -> int:
    """Both brokers at once; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.wire_differential", description=__doc__)
    parser.add_argument("--slices", default=",".join(SLICES))
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="with 3, the stories at clusters (default: 1)")
    parser.add_argument("--seeds", type=int, default=30, help="group scripts, and as many of transactions (default: 30)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="write what Kafka answers for the short form, and no more")
    parser.add_argument("--only", default="*", help="scripts whose names fit one of these, with commas between (default: *)")
    parser.add_argument("--named", action="store_true", help="print the differences that have a row, too")
    chosen = parser.parse_args()
    slices = [each for each in chosen.slices.split(",") if chosen.brokers == 1 or each in STORIES]
    scripts = [
        script
        for script in every(slices, range(chosen.first_seed, chosen.first_seed + chosen.seeds))
        if _fits(script, chosen.only)
    ]
    if chosen.record:
        return record(chosen.only)
    rows = named()
    with brokers() if chosen.brokers == 1 else clusters() as (kafka, odradek):
        found = compare(kafka, odradek, scripts, rows)
        for difference in found if chosen.named else ():
            print(f"difference: {difference}")
        missed = missed_faults(kafka, rows) if chosen.brokers == 1 else []
    left, uses = unnamed(found, rows)
    is_all = all(
        getattr(chosen, name) == parser.get_default(name) for name in ("slices", "seeds", "first_seed", "only", "brokers")
    )
    stale = [row for row, count in uses.items() if not count] if is_all else []
    for row in stale:
        print(f"names nothing: {row}")
    cases = len({(each.script, each.case) for each in found})
    used = sum(map(bool, uses.values()))
    print(f"differences {len(found)} in {cases} cases: named {len(found) - len(left)} by {used} rows, unnamed {len(left)}")
    return int(bool(left or stale or missed))


@contextmanager
def kafka_broker(settle_s: float = _SETTLE_S, quiet_s: float = _QUIET_S) -> Iterator[Driver]:
    """Apache Kafka, ready."""
    with (
        tempfile.TemporaryDirectory(prefix="odradek-wire-") as scratch,
        KafkaRuns(Path(scratch) / "kafka").serving("broker", {**SETTINGS, **OF_KAFKA}) as kafka,
    ):
        driver = Driver(kafka.address, settle_s, quiet_s)
        driver.run(warm_up())
        yield driver


@contextmanager
def brokers() -> Iterator[tuple[Driver, Driver]]:
    """Apache Kafka and odradek, both ready."""
    with (
        kafka_broker() as kafka,
        tempfile.TemporaryDirectory(prefix="odradek-wire-") as scratch,
        BrokerProcess(Path(scratch) / "odradek", settings=SETTINGS) as broker,
    ):
        odradek = Driver(broker.address)
        odradek.run(warm_up())
        yield kafka, odradek


@contextmanager
def clusters() -> Iterator[tuple[Driver, Driver]]:
    """The same with three brokers each."""
    with serving(KafkaCluster) as kafka, serving(OdradekCluster) as odradek:
        drivers = Driver(kafka, SPREADS_S, _QUIET_S), Driver(odradek, SPREADS_S)
        for driver in drivers:
            driver.run(internal_topics())
            driver.run(warm_up())
        yield drivers


def compare(kafka: Driver, odradek: Driver, scripts: list[Script], rows: list[Named]) -> list[Difference]:
    """Run all; what differs without a name is run again. It is a difference if it is found each time."""
    started_s = time.monotonic()
    cases: Counter[str] = Counter()
    found: list[Difference] = []
    for script in scripts:
        cases[script.slice] += script.cases
        differ = _once(kafka, odradek, script)
        for _ in range(_CONFIRMATIONS):
            if not unnamed(differ, rows)[0]:
                break
            again = set(_once(kafka, odradek, script))
            differ = [each for each in differ if each in again]
        found += differ
        for difference in unnamed(differ, rows)[0]:
            print(f"unnamed: {difference}", flush=True)
    told = ", ".join(f"{count} {name}" for name, count in cases.items())
    sent = {(step.api, step.version) for script in scripts for step in script.steps if step.label}
    print(f"{len({api for api, _ in sent})} API keys in {len(sent)} versions, {len(scripts)} scripts")
    print(f"{cases.total()} cases ({told}) in {time.monotonic() - started_s:.0f} s", flush=True)
    return found


def missed_faults(kafka: Driver, rows: list[Named]) -> list[str]:
    """Start odradek with each planted fault, and have the fault's script find it; the faults that are not found."""
    missed = []
    scripts = {script.name: script for script in every(SLICES, ())}
    for name, fault in FAULTS.items():
        with faulty(name) as odradek:
            left, _ = unnamed(_once(kafka, odradek, scripts[fault.script]), rows)
        if {each.answer for each in left} != {fault.answer}:
            missed.append(name)
            print(f"planted and not found: {name}")
    print(f"planted faults: {len(FAULTS)}, found {len(FAULTS) - len(missed)}", flush=True)
    return missed


def record(only: str) -> int:
    """Have Kafka answer the short form, in a new directory each time; keep what it always answers the same; the exit status.

    Of scripts whose names do not fit ``only`` the answers stay that are kept already.
    """
    all_scripts = list(short())
    scripts = [script for script in all_scripts if _fits(script, only)]
    names = {script.name for script in all_scripts} - {script.name for script in scripts}
    kept_already = {name: recorded for name, recorded in read().items() if name in names} if names else {}
    transcripts = []
    by_chance: set[str] = set()
    for _ in range(_RECORDINGS):
        with kafka_broker(_SETTLE_TO_RECORD_S, _QUIET_TO_RECORD_S) as kafka:
            transcripts.append([_recorded(kafka, script) for script in scripts])
            for script, first in zip(scripts, transcripts[0], strict=True):
                if script.slice == "groups" and any(kafka.run(script, first) != first for _ in range(_CONFIRMATIONS)):
                    by_chance.add(script.name)
    kept = []
    for script, first, *others in zip(scripts, *transcripts, strict=True):
        differ = [each for other in others for each in differences(script, first, other)]
        if script.name not in by_chance and not differ:
            kept.append((script, first))
        else:
            print(f"not the same each time: {script.name}")
            for difference in differ:
                print(f"    {difference.answer} | {difference.case} | {difference.kafka} | {difference.odradek}")
    print(f"{len(kept)} scripts, {sum(script.cases for script, _ in kept)} cases, {write(kept, others=kept_already)} bytes")
    return 0


def _recorded(kafka: Driver, script: Script) -> Transcript:
    """Return Kafka's answers. SystemExit: a request has ended Kafka."""
    try:
        return kafka.run(script)
    except OSError as error:
        sys.exit(f"{script.name}: Kafka is gone ({error}); leave out the request that ended it (_LEFT_OUT in cases/edges.py)")


def _fits(script: Script, only: str) -> bool:
    return any(fnmatch.fnmatch(script.name, pattern) for pattern in only.split(","))


def _once(kafka: Driver, odradek: Driver, script: Script) -> list[Difference]:
    expected = kafka.run(script)
    return list(differences(script, expected, odradek.run(script, expected)))


if __name__ == "__main__":
    sys.exit(main())
