"""The same requests, by clients of several principals, to a whole odradek and to a whole Apache Kafka.

Kafka's clients authenticate by SASL PLAIN. odradek is in this process, and takes a request's principal from here. Compared is
what both answer, in the version that was asked: codes, names, offsets, authorised operations. Left aside are messages for people,
what differs between any two brokers (ids, addresses, times), the order of elements, and the contents of configs.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from struct import Struct
from typing import Any, Final, Protocol
from uuid import UUID

from odradek.common.acls import CLUSTER_NAME
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.client_codecs import request_encoder, response_decoder
from odradek.protocol.message_types.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.message_types.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.message_types.describe_acls import DescribeAclsRequest
from odradek.protocol.message_types.find_coordinator import FindCoordinatorRequest
from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest
from odradek.protocol.message_types.metadata import MetadataRequest
from odradek.protocol.message_types.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.message_types.sasl_handshake import SaslHandshakeRequest
from odradek.testing import SocketlessBroker
from odradek.timing.clock import VirtualClock
from tests.campaigns.acl_differential.makers import DELETABLE, PRINCIPALS, TOPICS, TRANSACTIONAL_IDS, UNKNOWN_IDS
from tests.campaigns.acl_differential.requests import acls, drawn
from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns

REQUESTS: Final = 40
ADMIN: Final = "admin"
CLOSED: Final = "closed"
_TIMEOUT_S: Final = 20.0
_LENGTH: Final = Struct(">i")
_SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "delegation.token.secret.key": "a key",
}
_USERS: Final = " ".join(f'user_{name}="x"' for name in (ADMIN, *PRINCIPALS))
_SASL: Final = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{ADMIN}" password="x" {_USERS};',
}
# Of these what the client may do is compared, and not what there is.
_CODES_ONLY: Final = frozenset(
    {
        *(ApiKey.DESCRIBE_LOG_DIRS, ApiKey.DESCRIBE_QUORUM, ApiKey.UPDATE_FEATURES, ApiKey.LIST_CONFIG_RESOURCES),
        # Kafka's broker hears of a token later than its controller; sasl_differential waits for that.
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)
_LEFT_ASIDE: Final = frozenset(
    {
        *("error_message", "throttle_time_ms", "cluster_id", "host", "port", "configs", "rack", "controller_id", "endpoint_type"),
        *(
            "producer_id",
            "transaction_start_time_ms",
            "log_append_time_ms",
            "log_start_offset",
            "records",
            "aborted_transactions",
        ),
        *(
            "brokers",
            "node_endpoints",
            "batch_index_error_message",
            "record_errors",
            "leader_epoch",
            "metadata",
            "committed_leader_epoch",
        ),
        *("token_id", "hmac", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"),
        *("last_timestamp", "eligible_leader_replicas", "last_known_elr", "timestamp", "current_leader", "node_id"),
    }
)
_ALL: Final = DeleteAclsFilter(1, None, 1, None, None, 1, 1)


class Side(Protocol):
    """A broker."""

    ids: dict[str, UUID]

    async def ask(self, principal: str, api_key: ApiKey, version: int, request: Any) -> Any:
        """The response, or CLOSED."""


class Odradek:
    """In this process."""

    def __init__(self) -> None:
        self.ids: dict[str, UUID] = {}
        # Whoever asks for a token has authenticated.
        settings = _SETTINGS | {"listener.security.protocol.map": _SASL["listener.security.protocol.map"]}
        self._broker = SocketlessBroker(configs=settings, clock=VirtualClock(), seed=1)

    async def start(self) -> None:
        await self._broker.start()

    async def stop(self) -> None:
        await self._broker.stop()

    async def ask(self, principal: str, api_key: ApiKey, version: int, request: Any) -> Any:
        try:
            frame = b"".join(map(bytes, request_encoder(api_key, version)(7, "client", request)))[_LENGTH.size :]
            response = await self._broker.ask_bytes(frame, principal=f"User:{principal}", within_ms=60_000)
        except ConnectionAbortedError:
            return CLOSED
        assert response is not None
        return response_decoder(api_key, version)(response)


class Kafka:
    """A JVM's; a connection for each principal."""

    def __init__(self, address: str) -> None:
        self.ids: dict[str, UUID] = {}
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self._connections: dict[str, socket.socket] = {}

    async def ask(self, principal: str, api_key: ApiKey, version: int, request: Any) -> Any:
        try:
            return self._ask(self._connection(principal), api_key, version, request)
        except (ConnectionError, EOFError):
            self._connections.pop(principal).close()
            return CLOSED

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _connection(self, principal: str) -> socket.socket:
        if principal not in self._connections:
            connection = self._connections[principal] = socket.create_connection(self._address, _TIMEOUT_S)
            self._ask(connection, ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
            token = SaslAuthenticateRequest(f"\0{principal}\0x".encode())
            assert self._ask(connection, ApiKey.SASL_AUTHENTICATE, 2, token).error_code == 0
        return self._connections[principal]

    def _ask(self, connection: socket.socket, api_key: ApiKey, version: int, request: Any) -> Any:
        connection.sendall(b"".join(map(bytes, request_encoder(api_key, version)(7, "client", request))))
        (length,) = _LENGTH.unpack(self._read(connection, _LENGTH.size))
        return response_decoder(api_key, version)(self._read(connection, length))

    def _read(self, connection: socket.socket, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            part = connection.recv(length - len(parts))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)


async def compare_brokers(seeds: Iterable[int], scratch: Path, counts: Counter[str]) -> list[str]:
    """In words, what odradek answers otherwise than Kafka; ``counts`` is of requests by API."""
    odradek = Odradek()
    await odradek.start()
    try:
        with KafkaRuns(scratch).serving("kafka", _SETTINGS | _SASL) as run:
            kafka = Kafka(run.address)
            sides = odradek, kafka
            for side in sides:
                await _prepare(side)
            found: list[str] = []
            for seed in seeds:
                found += await _compare(seed, sides, counts)
            kafka.close()
            return found
    finally:
        await odradek.stop()


async def _prepare(side: Side) -> None:
    for kind in (0, 1):
        wanted = FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])
        await _until(side, ApiKey.FIND_COORDINATOR, 4, wanted, lambda answer: not answer.coordinators[0].error_code)
    for transactional_id in TRANSACTIONAL_IDS:
        producer = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=1_000, producer_id=-1, producer_epoch=-1
        )
        await _until(side, ApiKey.INIT_PRODUCER_ID, 4, producer, lambda answer: not answer.error_code)
    await _make_topics(side)


async def _make_topics(side: Side) -> None:
    """Have all topics there, and know their ids."""
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in (*TOPICS, DELETABLE)]
    await _until(
        side, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=10_000), lambda answer: answer.topics
    )
    gone = side.ids.get(DELETABLE)

    def are_there(answer: Any) -> bool:
        found = {topic.name: topic for topic in answer.topics}
        are_led = all(topic.partitions and topic.partitions[0].leader_id >= 0 for topic in answer.topics)
        return found.keys() >= {*TOPICS, DELETABLE} and are_led and found[DELETABLE].topic_id != gone

    answer = await _until(side, ApiKey.METADATA, 12, MetadataRequest(topics=None), are_there)
    side.ids = {topic.name: topic.topic_id for topic in answer.topics}


async def _until(side: Side, api_key: ApiKey, version: int, request: Any, is_so: Any) -> Any:
    """The admin's answer once it is so."""
    async with asyncio.timeout(60):
        while True:
            answer = await side.ask(ADMIN, api_key, version, request)
            if answer != CLOSED and is_so(answer):
                return answer
            await asyncio.sleep(0.05)


async def _compare(seed: int, sides: tuple[Side, Side], counts: Counter[str]) -> list[str]:
    random = Random(seed)
    creations = [each for each in acls(random) if _is_possible(each)]
    asked = drawn(random, REQUESTS)
    for side in sides:
        await _set_acls(side, creations)
    found = []
    for number, (principal, api_key, version, make) in enumerate(asked):
        counts[api_key.name] += 1
        responses = [await side.ask(principal, api_key, version, make(side.ids)) for side in sides]
        answers = [_canonical(*each, api_key) for each in zip(sides, responses, strict=True)]
        if answers[0] != answers[1]:
            request = f"seed {seed}, request {number}: {principal}, v{version} {make(sides[0].ids)}"
            found.append(f"{request}\n  odradek {answers[0]}\n  Kafka   {answers[1]}")
        for side, response in zip(sides, responses, strict=True):
            if api_key is ApiKey.DELETE_TOPICS and not all(topic.error_code for topic in response.responses):
                await _make_topics(side)
    return found


def _is_possible(creation: AclCreation) -> bool:
    return creation.resource_type != 4 or creation.resource_name == CLUSTER_NAME


async def _set_acls(side: Side, creations: list[AclCreation]) -> None:
    """Replace all; Kafka's broker hears of them later than its controller."""
    await side.ask(ADMIN, ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([_ALL]))
    answer = await side.ask(ADMIN, ApiKey.CREATE_ACLS, 3, CreateAclsRequest(creations))
    assert all(not result.error_code for result in answer.results), answer
    wanted = {(*each[:3], *each[3:]) for each in creations}

    def has_all(described: Any) -> bool:
        return {(*resource[:3], *acl) for resource in described.resources for acl in resource.acls} == wanted

    await _until(side, ApiKey.DESCRIBE_ACLS, 3, DescribeAclsRequest(1, None, 1, None, None, 1, 1), has_all)


def _canonical(side: Side, response: Any, api_key: ApiKey) -> Any:
    if response == CLOSED:
        return CLOSED
    if api_key in _CODES_ONLY:
        return response.error_code
    if api_key is ApiKey.ALTER_SHARE_GROUP_OFFSETS:
        # Kafka tells the id of a topic that it refuses.
        response = response._replace(responses=[each._replace(topic_id=None) for each in response.responses])
    return _plain(response, {topic_id: name for name, topic_id in side.ids.items()})


def _plain(value: Any, names: dict[UUID, str]) -> Any:
    """A message as plain values: fields by name but for those left aside, arrays sorted, ids of topics by their names."""
    if isinstance(value, UUID):
        # CreateTopics that only validates tells an id that nothing has.
        return names.get(value) or (str(value) if value in UNKNOWN_IDS.values() else "an id")
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(each, names) for name, each in value._asdict().items() if name not in _LEFT_ASIDE}
    if isinstance(value, list | tuple):
        return sorted((_plain(each, names) for each in value), key=repr)
    return value
