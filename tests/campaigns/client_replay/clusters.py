"""The sessions at clusters of three brokers: a recorded session is replayed to a cluster of either make.

The session was recorded with one broker. So each request goes to the broker that is to have it (``wire_differential.clusters``),
topics are made with replicas where they belong, and the recorded answers are changed to name the cluster's leaders, replicas and
coordinators. A cluster may still report other feature levels and sources of settings.

What is acknowledged may be read at once with one broker. So a Produce waits for all replicas here, and the answer of an EndTxn is
held back until the transaction's markers are replicated.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from benchmarks.cluster.clusters import KafkaCluster, OdradekCluster
from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.create_topics import CreatableReplicaAssignment
from odradek.testing import Replay, Timeline
from odradek.testing import replay as replay_timeline
from odradek.testing.timeline.events import Exchange
from tests.campaigns.client_replay.faulty import Fault
from tests.campaigns.planted import SpoiltAnswers
from tests.campaigns.wire_differential.clusters import (
    INTERNAL_TOPICS,
    LED_BY_FIRST,
    SPREADS_S,
    broker_for,
    internal_topics,
    serving,
)
from tests.campaigns.wire_differential.driver import Driver
from tests.raw_client import decode_response, encode_request

_PAUSE_S = 0.02


def replay_to(make: type[KafkaCluster | OdradekCluster], timeline: Timeline, *faults: Fault) -> Replay:
    """Replay to a cluster of its own, with faults in its answers if there are any."""
    with serving(make) as addresses:
        # The session has no share groups, so its one broker has not made their topic.
        Driver(addresses, SPREADS_S).run(internal_topics(SHARE_GROUP_STATE_TOPIC))
        with routed(addresses, *(each.spoilt for each in faults)) as address:
            return replay_timeline(placed(timeline), address)


def placed(timeline: Timeline) -> Timeline:
    """The timeline as it would be of a cluster whose leaders, replicas and coordinators are where they belong."""
    return Timeline(
        _PLACED[each.api](each) if each.api in _PLACED and each.answer is not None else each for each in timeline.exchanges
    )


def _with_replicas(exchange: Exchange) -> Exchange:
    topics = [
        topic._replace(
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(each, LED_BY_FIRST) for each in range(topic.num_partitions)],
        )
        for topic in exchange.request.topics
    ]
    # -1 where the version does not tell it.
    told = [
        each._replace(replication_factor=len(LED_BY_FIRST)) if each.replication_factor == 1 else each
        for each in exchange.answer.topics
    ]
    return replace(exchange, request=exchange.request._replace(topics=topics), answer=exchange.answer._replace(topics=told))


def _with_leaders(exchange: Exchange) -> Exchange:
    def placed_in(topic: Any) -> Any:
        replicas = INTERNAL_TOPICS.get(topic.name, LED_BY_FIRST)
        leads = {"leader_id": replicas[0], "replica_nodes": replicas, "isr_nodes": replicas}
        return topic._replace(partitions=[each._replace(**leads) for each in topic.partitions])

    answer = exchange.answer
    brokers = [answer.brokers[0]._replace(node_id=each) for each in LED_BY_FIRST]
    return replace(exchange, answer=answer._replace(brokers=brokers, topics=list(map(placed_in, answer.topics))))


def _with_coordinators(exchange: Exchange) -> Exchange:
    # A group's or a transaction's, by the type of the key.
    node_id = list(INTERNAL_TOPICS.values())[exchange.request.key_type][0]
    found = [each if each.error_code else each._replace(node_id=node_id) for each in exchange.answer.coordinators]
    return replace(exchange, answer=exchange.answer._replace(coordinators=found))


def _for_all_replicas(exchange: Exchange) -> Exchange:
    acks = exchange.request.acks
    return replace(exchange, request=exchange.request._replace(acks=-1 if acks == 1 else acks))


_PLACED = {
    ApiKey.CREATE_TOPICS: _with_replicas,
    ApiKey.METADATA: _with_leaders,
    ApiKey.FIND_COORDINATOR: _with_coordinators,
    ApiKey.PRODUCE: _for_all_replicas,
}


@contextmanager
def routed(addresses: str, *spoilt: SpoiltAnswers) -> Iterator[str]:
    """The address of a proxy that takes each request to the broker of a cluster that is to have it, one after the other."""
    brokers = [(host, int(port)) for host, _, port in (each.partition(":") for each in addresses.split(","))]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, brokers, spoilt), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, brokers: list[tuple[str, int]], spoilt: tuple[SpoiltAnswers, ...]) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_route, args=(client, brokers, spoilt), daemon=True).start()


def _route(client: socket.socket, brokers: list[tuple[str, int]], spoilt: tuple[SpoiltAnswers, ...]) -> None:
    connections: dict[int, socket.socket] = {}
    with suppress(OSError), client:
        while (request := _frame(client)) is not None:
            api, version = ApiKey(int.from_bytes(request[4:6])), int.from_bytes(request[6:8])
            index = broker_for(api)
            if index not in connections:
                connections[index] = socket.create_connection(brokers[index])
            connections[index].sendall(request)
            answer = _frame(connections[index])
            if answer is None:
                break
            if api is ApiKey.END_TXN:
                _settle(connections[index])
            for each in spoilt:
                answer = each.in_frame(api, version, answer)
            client.sendall(answer)
    for connection in connections.values():
        connection.close()


def _settle(coordinator: socket.socket) -> None:
    """Wait until no transaction is being ended."""
    asked = encode_request(ApiKey.LIST_TRANSACTIONS, 0, state_filters=["PrepareCommit", "PrepareAbort"])
    while True:
        coordinator.sendall(asked)
        frame = _frame(coordinator)
        if frame is None or not decode_response(ApiKey.LIST_TRANSACTIONS, 0, frame[4:])[1].transaction_states:
            return
        time.sleep(_PAUSE_S)


def _frame(source: socket.socket) -> bytes | None:
    """The next one with its length; None at the end."""
    head = source.recv(4, socket.MSG_WAITALL)
    rest = source.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL) if len(head) == 4 else b""
    return head + rest if rest else None
