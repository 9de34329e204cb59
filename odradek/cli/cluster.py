"""The brokers of a cluster, and the choice of the broker to ask: the controller, a leader, a coordinator.

A broker that is down keeps leading partitions and coordinating groups until its session ends. A command that asks many brokers
shows the answers of the others, and names the brokers that did not answer: ``Cluster.unreachable``.

Errors are reported in plain words: ``Unreachable`` if no broker answers, ``Refused`` for a broker's error code. ``patiently``
repeats a request after a transient error. Requests and responses are the canonical messages (``protocol.messages``), in the
versions of ``client.admin_apis``.
"""

from collections.abc import Callable, Iterable, Sequence
from threading import Event
from types import TracebackType
from typing import Any, Self, TypeVar

import click

from odradek.cli.options import CannotWork, command_config, did_you_mean, security_hint
from odradek.client.api import (
    Api,
    ClientError,
    ConnectFailed,
    Disconnected,
    InvalidFrame,
    InvalidRequest,
    LoginFailed,
    NegotiationFailed,
    ProtocolViolation,
    RequestRefused,
    RequestT,
    ResponseT,
    UnsupportedVersion,
)
from odradek.client.apis import FIND_COORDINATOR, GROUP, LIST_OFFSETS, METADATA
from odradek.client.blocking import BlockingClient
from odradek.client.known_cluster import (
    KnownCluster,
    Node,
    Partition,
    list_offsets_request,
    listed_offsets,
    metadata_request,
    name_of,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.find_coordinator import FindCoordinatorRequest
from odradek.protocol.message_types.metadata import MetadataResponseTopic

T = TypeVar("T")

# Loading coordinators, electing leaders and ending transactions take seconds.
_ATTEMPTS = 40
_BACKOFF_S = 0.25
_TRANSIENT = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
_PLAIN_WORDS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.TOPIC_ALREADY_EXISTS: "a topic with this name already exists",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic's name is invalid, or the topic is an internal one",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions is invalid",
    ErrorCode.INVALID_REPLICATION_FACTOR: "there are fewer brokers than replicas",
    ErrorCode.INVALID_CONFIG: "a config is invalid",
    ErrorCode.TOPIC_DELETION_DISABLED: "topics cannot be deleted here",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.NON_EMPTY_GROUP: "the group still has members",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members that commit its offsets: stop them first",
    ErrorCode.REQUEST_TIMED_OUT: "the broker did not finish in time",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is still loading",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "the coordinator is not available",
    ErrorCode.NOT_COORDINATOR: "the coordinator has moved",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id",
    ErrorCode.INVALID_PRODUCER_EPOCH: "the producer's epoch has changed",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "a newer coordinator has written to the partition",
    ErrorCode.CONCURRENT_TRANSACTIONS: "its transaction is still ending",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "the broker cannot read the regular expression",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader",
    ErrorCode.KAFKA_STORAGE_ERROR: "its disk or its log failed",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "you are not allowed to do this to the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "you are not allowed to do this to the group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "you are not allowed to do this to the transactional id",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "you are not allowed to do this to the cluster",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the brokers have no delegation.token.secret.key",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in without a delegation token",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "you are neither the token's owner nor a renewer",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "you are not allowed to create tokens of this user",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the token has expired",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "only users may renew a token",
    ErrorCode.SECURITY_DISABLED: "the broker has no authorizer",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for this",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the group's members have other assignors, or it is no consumer group",
    ErrorCode.PRODUCER_FENCED: "another producer has taken over the transactional id",
}


class Unreachable(CannotWork):
    """No broker answers, or the connection to it failed."""


class Refused(click.ClickException):
    """A broker's error code. The message has the subject, the broker's words or ours for the code, and the code's name."""

    def __init__(self, subject: str, code: int, message: str | None = None) -> None:
        try:
            self.code: ErrorCode | None = ErrorCode(code)
            name = self.code.name
        except ValueError:
            self.code, name = None, f"error code {code}"
        words = message or _PLAIN_WORDS.get(self.code or ErrorCode.NONE) or name.lower().replace("_", " ")
        super().__init__(f"{subject}: {' '.join(words.split()).rstrip('.')} ({name})")


def check(subject: str, code: int, message: str | None = None) -> None:
    """Raise Refused unless ``code`` is NONE."""
    if code:
        raise Refused(subject, code, message)


def patiently(attempt: Callable[[], T]) -> T:
    """Return the result of ``attempt``; repeat it for some seconds while a coordinator loads or a leader is elected."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except Refused as refusal:
            if refusal.code not in _TRANSIENT:
                raise
            Event().wait(_BACKOFF_S)
    return attempt()


_CLIENT_ID = "odradek-cli"
_TIMEOUT_S = 10.0


class Connection:
    """A connection to one broker. Raises Unreachable if a request gets no response, Refused if the version negotiation fails."""

    def __init__(self, host: str, port: int) -> None:
        self._address = f"{host}:{port}"
        try:
            self._client = BlockingClient(host, port, _CLIENT_ID, _TIMEOUT_S, *command_config())
        except ConnectFailed as failure:
            raise Unreachable(f"no broker answers at {self._address}: {failure.reason}") from failure
        except LoginFailed as failure:
            raise Unreachable(f"the broker at {self._address} refused the login: {failure.reason}") from failure
        except NegotiationFailed as failure:
            raise Refused(self._address, failure.code) from failure
        except ClientError as failure:
            raise self._unreachable("API_VERSIONS", failure) from failure

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def serves(self, api: Api[Any, Any]) -> bool:
        """Return whether the broker serves a version of the API's range."""
        return self._client.serves(api)

    def call(self, api: Api[RequestT, ResponseT], request: RequestT) -> ResponseT:
        """Send a request and return its response."""
        try:
            return self._client.call(api, request)
        except UnsupportedVersion as failure:
            lowest, highest = api.versions
            raise Unreachable(
                f"the broker at {self._address} does not serve {api.key.name} versions {lowest} to {highest}"
            ) from failure
        except ClientError as failure:
            raise self._unreachable(api.key.name, failure) from failure

    def _unreachable(self, name: str, failure: ClientError) -> Unreachable:
        match failure:
            case InvalidFrame():
                reason = f"{self._address} is not a Kafka broker: its answer is not a Kafka response{security_hint()}"
            case ProtocolViolation():
                reason = f"cannot read the answer of {self._address} to {name}: {failure.reason}"
            case InvalidRequest():
                reason = f"cannot send {name}: {failure.reason}"
            case _:
                hint = security_hint() if isinstance(failure, Disconnected) else ""
                reason = f"the broker at {self._address} did not answer {name}: {failure.reason}{hint}"
        return Unreachable(reason)


class Cluster:
    """The brokers of a cluster, a context manager. ``any`` is a connection to the first bootstrap address that answers."""

    def __init__(self, bootstrap: Sequence[tuple[str, int]]) -> None:
        self.any = _first_reachable(bootstrap)
        # Failures that ``tried`` has skipped.
        self.unreachable: list[Unreachable] = []
        self._connections: dict[tuple[str, int], Connection | Unreachable] = {}
        self._known = KnownCluster()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None) -> None:
        for connection in (self.any, *self._connections.values()):
            if isinstance(connection, Connection):
                connection.close()

    def tried(self, attempt: Callable[[], T]) -> T | None:
        """Return the result of ``attempt``; None if a broker does not answer. The failure is added to ``unreachable``."""
        try:
            return attempt()
        except Unreachable as failure:
            if failure not in self.unreachable:
                self.unreachable.append(failure)
            return None

    def metadata(self, topics: Iterable[str] | None) -> list[MetadataResponseTopic]:
        """Return the MetadataResponseTopics of these names, or of all topics for None. Each has its error; none is created."""
        response = self.any.call(METADATA, metadata_request(topics))
        self._known.take(response)
        return sorted(response.topics, key=lambda topic: str(topic.name))

    def nodes(self) -> list[Node]:
        """Return all brokers."""
        if not self._known.nodes:
            self.metadata([])
        return list(self._known.nodes.values())

    def controller(self) -> Connection:
        """Return the broker that creates and deletes topics. With KRaft that is any broker: it forwards the request."""
        self.nodes()
        return self.any if self._known.controller_id not in self._known.nodes else self.node(self._known.controller_id)

    def node(self, node_id: int) -> Connection:
        """Return a broker by id, at its address in the last Metadata response."""
        try:
            return self._connect(self._known.node(node_id))
        except ConnectFailed as failure:
            raise Unreachable(failure.reason) from failure

    def coordinator(self, key: str, key_type: int = GROUP) -> tuple[Connection, Node]:
        """Return the coordinator of a group or of a transactional id.

        Raises Refused. COORDINATOR_NOT_AVAILABLE is temporary, so callers use ``patiently``.
        """
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
        found = self.any.call(FIND_COORDINATOR, request).coordinators[0]
        check(key, found.error_code, found.error_message)
        node = Node(found.node_id, found.host, found.port)
        return self._connect(node), node

    def leaders(self, topics: Iterable[str] | None, broker_id: int | None = None) -> dict[Partition, int]:
        """Return the leader of each partition of these topics, or of all topics for None; -1 for a partition without one.

        With ``broker_id``, only partitions with a replica on this broker are returned. Raises Refused.
        """
        leaders = {}
        for topic in self.metadata(topics):
            check(str(topic.name), topic.error_code)
            for partition in sorted(topic.partitions, key=lambda one: int(one.partition_index)):
                if broker_id is None or broker_id in partition.replica_nodes:
                    leaders[str(topic.name), int(partition.partition_index)] = int(partition.leader_id)
        return leaders

    def list_offsets(self, wanted: dict[Partition, int]) -> dict[Partition, int | Refused]:
        """Return the first offset at or after the given timestamp of each partition; -1 if every record is earlier.

        EARLIEST_TIMESTAMP and LATEST_TIMESTAMP ask for the log's ends. A partition that does not exist, or has no leader that
        answers, gets its refusal in place of an offset.
        """
        offsets: dict[Partition, int | Refused] = {}
        by_leader: dict[int, dict[Partition, int]] = {}
        if wanted:
            self.metadata({topic for topic, _ in wanted})
        for partition, timestamp in wanted.items():
            try:
                by_leader.setdefault(self._known.leader(partition), {})[partition] = timestamp
            except RequestRefused as refusal:
                offsets[partition] = Refused(refusal.subject, refusal.code)
        for leader, asked in by_leader.items():
            request = list_offsets_request(asked)
            answer = self.tried(lambda leader=leader, request=request: self.node(leader).call(LIST_OFFSETS, request))  # type: ignore[misc]
            if answer is None:
                why = self.unreachable[-1].message
                offsets |= {one: Refused(name_of(one), ErrorCode.LEADER_NOT_AVAILABLE, why) for one in asked}
                continue
            for partition, (offset, code) in listed_offsets(answer).items():
                offsets[partition] = Refused(name_of(partition), code) if code else offset
        return offsets

    def _connect(self, node: Node) -> Connection:
        address = node.host, node.port
        connection = self._connections.get(address)
        if connection is None:
            try:
                connection = Connection(*address)
            except Unreachable as failure:
                connection = failure
            self._connections[address] = connection
        if isinstance(connection, Unreachable):
            raise connection
        return connection


def _first_reachable(bootstrap: Sequence[tuple[str, int]]) -> Connection:
    failures = []
    for host, port in bootstrap:
        try:
            return Connection(host, port)
        except Unreachable as failure:
            failures.append(failure.message)
    raise Unreachable("; ".join(failures))


def known_topics(cluster: Cluster, names: Sequence[str]) -> tuple[list[MetadataResponseTopic], list[Refused]]:
    """Return the topics that exist, and a refusal for each of the others."""
    found = cluster.metadata(dict.fromkeys(names))
    refused = [unknown_topic(cluster, str(topic.name), topic.error_code) for topic in found if topic.error_code]
    return [topic for topic in found if not topic.error_code], refused


def unknown_topic(cluster: Cluster, name: str, code: int, message: str | None = None) -> Refused:
    """Return the refusal of a topic. One that does not exist gets the names that it resembles."""
    if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return Refused(name, code, message)
    known = [str(topic.name) for topic in cluster.metadata(None)]
    similar = did_you_mean(name, known)
    return Refused(name, code, f"there is no such topic or partition{similar}" if similar else message)
