"""See the package. The exit status is 1 if an answer differs without a row in docs/differences.md, or a fault is missed."""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.cluster.clusters import KafkaCluster, OdradekCluster
from odradek.testing import Broker, Replay, Timeline, replay
from tests.campaigns.client_replay.clusters import between, replay_to
from tests.campaigns.client_replay.faulty import FAULTS
from tests.campaigns.client_replay.sessions import SESSIONS, record
from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns
from tests.campaigns.planted import SpoiltAnswers
from tests.campaigns.wire_differential.cases.setup import always_there
from tests.campaigns.wire_differential.compare import Difference, Named, named, unnamed
from tests.campaigns.wire_differential.driver import Driver
from tests.campaigns.wire_differential.script import Script
from tests.campaigns.wire_differential.settings import SETTINGS

# Kafka refuses share and streams groups then, as odradek does. Its coordinators make their topics when they are asked for.
_WITHOUT_SHARE_GROUPS = Script("features", always_there()[:1])


def main() -> int:
    """Each session in turn; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.client_replay", description=__doc__)
    parser.add_argument("--clients", default=",".join(SESSIONS))
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="with 3, at clusters of each make (default: 1)")
    parser.add_argument("--named", action="store_true", help="print the differences that have a row, too")
    chosen = parser.parse_args()
    rows = named()
    if chosen.brokers == 3:
        return at_clusters(chosen.clients.split(","), rows, tells_named=chosen.named)
    failures = 0
    with tempfile.TemporaryDirectory(prefix="odradek-replay-") as scratch:
        kafka = KafkaRuns(Path(scratch) / "kafka")
        for client in chosen.clients.split(","):
            timeline = record(SESSIONS[client])
            again = against_odradek(timeline)
            with kafka.serving(client, SETTINGS) as run:
                Driver(run.address, 0.1).run(_WITHOUT_SHARE_GROUPS)
                there = replay(timeline, run.address)
            found = [as_in_the_table(client, there, number) for number in range(len(there.differences))]
            left, uses = unnamed(found, rows)
            for difference in found if chosen.named else left:
                print(difference)
            missed = [fault for fault in FAULTS if not against_odradek(timeline, fault).differences]
            failures += len(again.differences) + len(left) + len(missed)
            print(
                f"{client}: {again.sent} requests; differences from another odradek {len(again.differences)}, from Apache Kafka "
                f"{len(found)}, named {len(found) - len(left)} by {sum(map(bool, uses.values()))} rows, unnamed {len(left)}; "
                f"{there.sent_again} sent again; planted faults {len(FAULTS)}, missed {len(missed)}",
                flush=True,
            )
    return int(failures > 0)


def at_clusters(clients: list[str], rows: list[Named], *, tells_named: bool) -> int:
    """Each session at three brokers of each make; the exit status."""
    failures = 0
    for client in clients:
        timeline = record(SESSIONS[client])
        there, here = (replay_to(make, timeline, _WITHOUT_SHARE_GROUPS) for make in (KafkaCluster, OdradekCluster))
        found = between(client, there, here)
        left, uses = unnamed(found, rows)
        for difference in found if tells_named else left:
            print(difference)
        failures += len(left)
        print(
            f"{client}, three brokers: {here.sent} requests; differences between the clusters {len(found)}, named "
            f"{len(found) - len(left)} by {sum(map(bool, uses.values()))} rows, unnamed {len(left)}; sent again "
            f"{there.sent_again} to Kafka, {here.sent_again} to odradek",
            flush=True,
        )
    return int(failures > 0)


def against_odradek(timeline: Timeline, fault: str | None = None) -> Replay:
    """Replay against an odradek of its own, with a planted fault if one is named."""
    with Broker(configs=SETTINGS) as broker:
        if fault is not None:
            api, _, change = FAULTS[fault]
            SpoiltAnswers(api, change).stand_in(broker)
        return replay(timeline, broker.bootstrap_servers)


def as_in_the_table(client: str, there: Replay, number: int) -> Difference:
    """A difference in the words of the table in docs/differences.md."""
    found = there.differences[number]
    exchange = found.exchange
    return Difference(
        client, f"{exchange.api.name} {found.path}", f"v{exchange.version} {client}", str(found.replayed), str(found.recorded)
    )


if __name__ == "__main__":
    sys.exit(main())
