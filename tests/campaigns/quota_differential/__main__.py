"""Runs the campaign: ``python -m tests.campaigns.quota_differential --stories 20000 --seconds 60``."""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns
from tests.campaigns.quota_differential.brokers import measure, problems, table
from tests.campaigns.quota_differential.core import STEPS, differences, kafkas_answers, story
from tests.campaigns.quota_differential.libraries import measure_libraries
from tests.campaigns.quota_differential.libraries import problems as of_libraries

# Stories that one JVM is asked about.
_BATCH = 2_500
# Records have times of long ago.
_SETTINGS = {"log.retention.ms": "-1"}


def main() -> int:
    """0 where nothing differed."""
    parser = argparse.ArgumentParser(prog="quota-differential", description=__doc__)
    parser.add_argument("--stories", type=int, default=20_000, help="histories for the quota managers alone")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long throttled clients are measured")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    found = _core(range(chosen.seed, chosen.seed + chosen.stories))
    if chosen.seconds > 0:
        found += _brokers(chosen.seconds)
    print(*found[:20], sep="\n")
    print(f"differences {len(found)}")
    return 1 if found else 0


def _core(seeds: range) -> list[str]:
    began_s = time.monotonic()
    found: list[str] = []
    for start in range(seeds.start, seeds.stop, _BATCH):
        stories = [story(seed) for seed in range(start, min(start + _BATCH, seeds.stop))]
        with tempfile.TemporaryDirectory(prefix="odradek-quotas") as scratch:
            found += differences(stories, kafkas_answers(stories, Path(scratch)))
    took_s = time.monotonic() - began_s
    print(f"managers: {len(seeds)} histories of {STEPS} steps, differences {len(found)}; {took_s:.0f} s", flush=True)
    return found


def _brokers(seconds: float) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="odradek-quotas") as name:
        scratch = Path(name)
        with KafkaRuns(scratch / "kafka").serving("broker", _SETTINGS) as kafka, BrokerProcess(scratch / "odradek") as odradek:
            addresses = (odradek.address, kafka.address)
            with ThreadPoolExecutor(2) as threads:
                ours, kafkas = threads.map(lambda address: measure(address, seconds), addresses)
                print(*table(ours, kafkas), sep="\n", flush=True)
                found = problems(ours, kafkas)
                libraries = list(threads.map(lambda address: measure_libraries(address, seconds), addresses))
    for whose, rates in zip(("odradek", "Kafka"), libraries, strict=True):
        print(f"librdkafka at {whose}: " + ", ".join(f"{name} {rate:.0f} bytes/s" for name, rate in rates.items()), flush=True)
        found += of_libraries(whose, rates)
    return found


if __name__ == "__main__":
    sys.exit(main())
