"""The sessions at clusters of three brokers: a recorded session is replayed to one of each make, and their answers are compared.

The session was recorded with one broker. So each request goes to the broker that is to have it (``wire_differential.clusters``),
and topics are made with replicas where they belong. That there are three brokers, both clusters tell.
"""

import socket
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from benchmarks.cluster.clusters import KafkaCluster, OdradekCluster
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.create_topics import CreatableReplicaAssignment
from odradek.testing import Replay, Timeline
from odradek.testing import replay as replay_timeline
from odradek.testing.timeline.replay import Difference as ReplayDifference
from tests.campaigns.wire_differential.cases.setup import always_there
from tests.campaigns.wire_differential.clusters import LED_BY_FIRST, SPREADS_S, broker_for, internal_topics, serving
from tests.campaigns.wire_differential.compare import Difference
from tests.campaigns.wire_differential.driver import Driver
from tests.campaigns.wire_differential.script import Script


def replay_to(make: type[KafkaCluster | OdradekCluster], timeline: Timeline, features: Script) -> Replay:
    """Replay to a cluster of its own."""
    with serving(make) as addresses:
        driver = Driver(addresses, SPREADS_S)
        driver.run(internal_topics())
        driver.run(features)
        driver.run(Script("loaded", always_there()))
        with routed(addresses) as address:
            return replay_timeline(placed(timeline), address)


def placed(timeline: Timeline) -> Timeline:
    """The timeline with topics whose replicas are where they belong."""
    return Timeline(
        replace(each, request=_placed_topics(each.request)) if each.api is ApiKey.CREATE_TOPICS else each
        for each in timeline.exchanges
    )


def _placed_topics(request: Any) -> Any:
    return request._replace(
        topics=[
            topic._replace(
                num_partitions=-1,
                replication_factor=-1,
                assignments=[CreatableReplicaAssignment(each, LED_BY_FIRST) for each in range(topic.num_partitions)],
            )
            for topic in request.topics
        ]
    )


def between(client: str, kafka: Replay, odradek: Replay) -> list[Difference]:
    """Return the differences between the two clusters' answers to a session."""
    there, here = _told(kafka), _told(odradek)
    found = []
    for begun, path in sorted(there.keys() | here.keys()):
        one, other = there.get((begun, path), {}), here.get((begun, path), {})
        for element in one.keys() | other.keys():
            example = one.get(element) or other[element]
            # What one of them has not told otherwise is as it was recorded.
            values = [str((each.get(element) or replace(example, replayed=example.recorded)).replayed) for each in (one, other)]
            if values[0] != values[1]:
                api = f"{example.exchange.api.name} {path}"
                found.append(Difference(client, api, f"v{example.exchange.version} {client}", *values))
    return found


def _told(replayed: Replay) -> dict[tuple[int, str], dict[str, ReplayDifference]]:
    """The answers that are not the recorded ones, by exchange and path, and of arrays by the element that is there or not."""
    told: dict[tuple[int, str], dict[str, ReplayDifference]] = defaultdict(dict)
    for each in replayed.differences:
        # Kafka tells any broker for the controller, which clients do not reach.
        if each.path != "controller_id":
            element = f"{each.recorded} {each.replayed}" if each.path.endswith("[]") else ""
            told[each.exchange.begun, each.path][element] = each
    return told


@contextmanager
def routed(addresses: str) -> Iterator[str]:
    """The address of a proxy that takes each request to the broker of a cluster that is to have it, one after the other."""
    brokers = [(host, int(port)) for host, _, port in (each.partition(":") for each in addresses.split(","))]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, brokers), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, brokers: list[tuple[str, int]]) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_route, args=(client, brokers), daemon=True).start()


def _route(client: socket.socket, brokers: list[tuple[str, int]]) -> None:
    connections: dict[int, socket.socket] = {}
    with suppress(OSError), client:
        while (request := _frame(client)) is not None:
            index = broker_for(ApiKey(int.from_bytes(request[4:6], "big")))
            if index not in connections:
                connections[index] = socket.create_connection(brokers[index])
            connections[index].sendall(request)
            answer = _frame(connections[index])
            if answer is None:
                break
            client.sendall(answer)
    for connection in connections.values():
        connection.close()


def _frame(source: socket.socket) -> bytes | None:
    """The next one with its length; None at the end."""
    head = source.recv(4, socket.MSG_WAITALL)
    rest = source.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL) if len(head) == 4 else b""
    return head + rest if rest else None
