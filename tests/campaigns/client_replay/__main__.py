"""See the package. The exit status is 1 if an answer differs without a row in docs/differences-all.md, or a fault is missed."""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.cluster.clusters import KafkaCluster, OdradekCluster
from odradek.testing import Broker, Replay, Timeline, replay
from odradek.testing.timeline.replay import Difference as ReplayDifference
from tests.campaigns.client_replay.clusters import replay_to
from tests.campaigns.client_replay.faulty import FAULTS, Fault, answers
from tests.campaigns.client_replay.sessions import SESSIONS, record
from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns
from tests.campaigns.wire_differential.compare import Difference, named, unnamed
from tests.campaigns.wire_differential.settings import SETTINGS


def main() -> int:
    """Each session in turn; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.client_replay", description=__doc__)
    parser.add_argument("--clients", default=",".join(SESSIONS))
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="with 3, at clusters of each make (default: 1)")
    parser.add_argument("--named", action="store_true", help="print the differences that have a row, too")
    chosen = parser.parse_args()
    rows = named()
    failures = 0
    for client in chosen.clients.split(","):
        timeline = record(SESSIONS[client])
        there, here, spoilt = _replayed(timeline, chosen.brokers)
        found = between(client, there, here)
        left, uses = unnamed(found, rows)
        for difference in found if chosen.named else left:
            print(difference)
        missed = [name for name, fault in FAULTS.items() if fault.answer not in answers(spoilt)]
        # A cluster reports other feature levels and sources of settings than one broker, as Kafka's does, or it is in ``left``.
        unlike = here.differences if chosen.brokers == 1 else []
        failures += len(unlike) + len(left) + len(missed)
        print(
            f"{client}, brokers of each make {chosen.brokers}: {here.sent} requests; differences from the recording "
            f"{len(here.differences)}, from Apache Kafka {len(found)}, named {len(found) - len(left)} by "
            f"{sum(map(bool, uses.values()))} rows, unnamed {len(left)}; sent again {there.sent_again} to Kafka, "
            f"{here.sent_again} to odradek; planted faults {len(FAULTS)}, missed {len(missed)}",
            flush=True,
        )
    return int(failures > 0)


def _replayed(timeline: Timeline, brokers: int) -> tuple[Replay, Replay, Replay]:
    """Replays to Apache Kafka, to odradek, and to odradek with all faults: each is in the answers of an API of its own."""
    if brokers == 1:
        return against_kafka(timeline), against_odradek(timeline), against_odradek(timeline, *FAULTS.values())
    return (
        replay_to(KafkaCluster, timeline),
        replay_to(OdradekCluster, timeline),
        replay_to(OdradekCluster, timeline, *FAULTS.values()),
    )


def against_odradek(timeline: Timeline, *faults: Fault) -> Replay:
    """Replay against an odradek of its own, with planted faults if there are any."""
    with Broker(configs=SETTINGS) as broker:
        for fault in faults:
            fault.spoilt.stand_in(broker)
        return replay(timeline, broker.bootstrap_servers)


def against_kafka(timeline: Timeline) -> Replay:
    """Replay against an Apache Kafka of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="odradek-replay-") as scratch,
        KafkaRuns(Path(scratch) / "kafka").serving("run", SETTINGS) as run,
    ):
        return replay(timeline, run.address)


def between(client: str, kafka: Replay, odradek: Replay) -> list[Difference]:
    """Return the differences between the two makes' answers to a session, in the words of docs/differences-all.md."""
    there, here = _told(kafka), _told(odradek)
    found = []
    for place in sorted(there.keys() | here.keys()):
        example = there.get(place) or here[place]
        # A make that reports no difference here gave the recorded answer.
        as_recorded = replace(example, replayed=example.recorded)
        values = [str(each.get(place, as_recorded).replayed) for each in (there, here)]
        if values[0] != values[1]:
            answer = f"{example.exchange.api.name} {example.path}"
            found.append(Difference(client, answer, f"v{example.exchange.version} {client}", *values))
    return found


def _told(replayed: Replay) -> dict[tuple[int, str, str], ReplayDifference]:
    """The answers that are not the recorded ones, by exchange, path, and the element of an array that is there or not."""
    told: dict[tuple[int, str, str], ReplayDifference] = {}
    for each in replayed.differences:
        # Kafka tells any broker for the controller, which clients do not reach.
        if each.path == "controller_id":
            continue
        element = f"{each.recorded} {each.replayed}" if each.path.endswith("[]") else ""
        # A field may differ in several elements.
        while (each.exchange.begun, each.path, element) in told:
            element += "~"
        told[each.exchange.begun, each.path, element] = each
    return told


if __name__ == "__main__":
    sys.exit(main())
