"""The cluster's other nodes: connections to them, and transaction requests to the brokers among them.

Brokers are reached through the listener between brokers, controllers through the first of ``controller.listener.names``. As in
Kafka, the ``ssl.`` configs of this listener are also the client's: its certificate is in the key store, the certificates it
trusts are in the trust store, and ``ssl.endpoint.identification.algorithm`` says whether to verify the host name. The listener's
JAAS line is used, too (``sasl.peer_login``).

    WriteTxnMarkers       from a transaction's coordinator to the leaders of its partitions: end the transaction (KIP-98)
    AddPartitionsToTxn    from a partition's leader, or a group's coordinator, to the transaction's coordinator: add partitions,
                          or verify that they are in the transaction (KIP-890)

All markers of one turn of the event loop go to a broker in one request. A question (AddPartitionsToTxn) has a connection to
itself. So it waits neither for the replication of markers nor for another producer's question. If the coordinator is still
completing the producer's last transaction, the question is asked again, as Kafka's leaders do. odradek's own coordinator answers
after the completion.

Kafka's classes are TransactionMarkerChannelManager and AddPartitionsToTxnManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.cluster.broker_clients import BrokerClients
from odradek.client.api import Api, ClientError
from odradek.client.node_client import Connect, NodeClient, connect_to
from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.listener_config import (
    PLAINTEXT,
    SASL_PROTOCOLS,
    TLS_PROTOCOLS,
    inter_broker_listener,
    security_protocols,
)
from odradek.controller.metadata.topic import TRANSACTION_STATE_TOPIC
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError, error_of
from odradek.protocol.hashing import partition_for
from odradek.protocol.message_types.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.message_types.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.timing.driver import OwnTasks, Wakeup
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from odradek.broker.cluster.broker_clients import PeerNetwork
    from odradek.broker.coordination.transaction_coordinator import Verdicts
    from odradek.client.login import Login
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.controller.metadata.image import MetadataImage
    from odradek.controller.quorum.leader_discovery import Address
    from odradek.coordinator.runtime.result import EndTxnMarker
    from odradek.timing.clock import Clock


class PeerConnections:
    """The connectors to brokers and controllers. Loop thread only.

    ``to_controllers``: whether there are controllers elsewhere. Raises InvalidConfig if stores cannot be loaded, or if the login
    is ambiguous.
    """

    def __init__(self, config: BrokerConfig, clock: Clock, *, to_controllers: bool) -> None:
        listener = inter_broker_listener(config)
        self._broker = _ListenerConnector(config, listener, "sasl.mechanism.inter.broker.protocol", clock)
        _ensure_mechanism_is_served(config, listener)
        self._controller: _ListenerConnector | None = None
        if to_controllers:
            controllers = config["controller.listener.names"][0].upper()
            self._controller = _ListenerConnector(config, controllers, "sasl.mechanism.controller.protocol", clock)

    def to_broker(self, address: Address) -> Connect:
        """Return the connector to a broker."""
        return self._broker.connect(address)

    def to_controller(self, address: Address) -> Connect:
        """Return the connector to a controller."""
        assert self._controller is not None  # noqa: S101  only a broker with controllers elsewhere connects to them
        return self._controller.connect(address)


class _ListenerConnector:
    """Connects through one listener."""

    def __init__(self, config: BrokerConfig, listener: str, config_name: str, clock: Clock) -> None:
        protocol = security_protocols(config).get(listener, PLAINTEXT)
        self._tls: Callable[[], ssl.SSLContext] | None = None
        self._login: Callable[[], Login] | None = None
        if protocol in TLS_PROTOCOLS:
            from odradek.broker.security.tls.tls_listeners import TlsClient  # 4.6 ms

            self._tls = TlsClient(config, listener).context
        if protocol in SASL_PROTOCOLS:
            from odradek.broker.security.sasl.peer_login import PeerLogin  # 12 ms

            self._login = PeerLogin(config, listener, config_name, clock)

    def connect(self, address: Address) -> Connect:
        return connect_to(*address, self._tls, self._login)


def _ensure_mechanism_is_served(config: BrokerConfig, listener: str) -> None:
    """Raise InvalidConfig unless this listener serves the mechanism: the other brokers have the same listener."""
    if security_protocols(config).get(listener) not in SASL_PROTOCOLS:
        return
    name = "sasl.mechanism.inter.broker.protocol"
    mechanism = config[name]
    sasl = config.sasl_config(listener)
    enabled = sasl.value("sasl.enabled.mechanisms")
    if mechanism not in enabled:
        key = sasl.key("sasl.enabled.mechanisms")
        raise InvalidConfig(name, mechanism, f"among the {key} of the listener between brokers: {', '.join(enabled)}")


_MARKERS: Final[Api[WriteTxnMarkersRequest, WriteTxnMarkersResponse]] = Api(ApiKey.WRITE_TXN_MARKERS)
# The first version for brokers.
_VERIFY: Final[Api[AddPartitionsToTxnRequest, AddPartitionsToTxnResponse]] = Api(ApiKey.ADD_PARTITIONS_TO_TXN, 4)
# The most connections to one broker for verifications. Further ones share them.
_MAX_VERIFICATION_CLIENTS: Final = 16
_PURPOSE: Final = "transactions"


class _PendingMarker(NamedTuple):
    """A marker for one partition, and the Reply for its outcome."""

    topic: str
    partition: int
    marker: EndTxnMarker
    reply: Reply[KafkaError | None]


class _Peer:
    """The connections to one broker."""

    def __init__(self, address: Address, network: PeerNetwork) -> None:
        self._address = address
        self._network = network
        self.markers = network.new_client(address, _PURPOSE)
        self._verification_clients: list[NodeClient] = []

    def client_for_verification(self) -> NodeClient:
        """Return a client without open requests, or the least busy one if there are _MAX_VERIFICATION_CLIENTS already."""
        clients = self._verification_clients
        found = min(clients, key=lambda client: client.unanswered, default=None)
        if found is None or (found.unanswered and len(clients) < _MAX_VERIFICATION_CLIENTS):
            found = self._network.new_client(self._address, _PURPOSE, 1)
            clients.append(found)
        return found

    def close(self) -> None:
        """Close the connections. Requests without a response fail."""
        for client in (self.markers, *self._verification_clients):
            client.close()


class TransactionPeers:
    """The OtherBrokers of the transaction coordinator. Loop thread only."""

    def __init__(self, image: MetadataImage, network: PeerNetwork, *, retry_backoff_ms: int, max_retry_ms: int) -> None:
        """The times are ``add.partitions.to.txn.retry.backoff.ms`` and its ``.max.ms``."""
        self._image = image
        self._network = network
        self._timer = network.timer
        self._node_id = network.node_id
        self._retry_backoff_ms = retry_backoff_ms
        self._max_retry_ms = min(max_retry_ms, network.request_timeout_ms)
        self._peers = BrokerClients(network, lambda address: _Peer(address, network))
        self._unsent: dict[int, list[_PendingMarker]] = {}
        self._tasks = OwnTasks()

    def is_here(self, topic: str, partition: int) -> bool:
        """Return whether this broker leads the partition, or no such partition exists."""
        return self._leader(topic, partition) in (self._node_id, None)

    def coordinates(self, transactional_id: str) -> bool:
        """Return whether this broker coordinates the transaction, or ``__transaction_state`` does not exist yet."""
        return self._coordinator(transactional_id) in (self._node_id, None)

    def write_marker(self, topic: str, partition: int, marker: EndTxnMarker) -> Reply[KafkaError | None]:
        """Send a marker to the leader, together with others of this turn. KafkaError: LEADER_NOT_AVAILABLE."""
        leader = self._leader(topic, partition)
        if leader is None or self._network.address_of(leader) is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader")
        if not self._unsent:
            self._network.call_soon(self._send_markers)
        reply: Reply[KafkaError | None] = Reply()
        self._unsent.setdefault(leader, []).append(_PendingMarker(topic, partition, marker, reply))
        return reply

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: frozenset[tuple[str, int]], *, adds: bool
    ) -> Reply[Verdicts]:
        """Ask the transaction's coordinator. If it does not answer: COORDINATOR_NOT_AVAILABLE, NETWORK_EXCEPTION."""
        reply: Reply[Verdicts] = Reply()
        coordinator = self._coordinator(transactional_id)
        if coordinator is None or self._network.address_of(coordinator) is None:
            reply.complete(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return reply
        by_topic: dict[str, list[int]] = {}
        for topic, index in sorted(partitions):
            by_topic.setdefault(topic, []).append(index)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=not adds,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in by_topic.items()],
        )
        self._tasks.start(self._ask(coordinator, transaction, partitions, reply))
        return reply

    def close(self) -> None:
        """Close all connections. Open requests get no answer."""
        self._tasks.cancel()
        self._peers.close()

    def _leader(self, topic: str, partition: int) -> int | None:
        """Return the leader; -1 if there is none now, None if there is no such partition."""
        known = self._image.topics.get(topic)
        record = None if known is None else known.partitions.get(partition)
        return None if record is None else record.leader

    def _coordinator(self, transactional_id: str) -> int | None:
        known = self._image.topics.get(TRANSACTION_STATE_TOPIC)
        return None if known is None else known.partitions[partition_for(transactional_id, len(known.partitions))].leader

    # ------------------------------------------------------------------------------------------------------------------ markers

    def _send_markers(self) -> None:
        unsent, self._unsent = self._unsent, {}
        for node_id, asked in unsent.items():
            left = asked
            while left:
                # A response identifies transactions only by producer id, so a request has one marker for each.
                markers = {each.marker.producer_id: each.marker for each in reversed(left)}
                self._tasks.start(
                    self._write(node_id, [each for each in left if each.marker == markers[each.marker.producer_id]])
                )
                left = [each for each in left if each.marker != markers[each.marker.producer_id]]

    async def _write(self, node_id: int, asked: list[_PendingMarker]) -> None:
        peer = self._peers.client_of(node_id)
        told: dict[tuple[int, str, int], int] = {}
        reason = "the leader does not answer"
        if peer is not None:
            try:
                response = await peer.markers.request(_MARKERS, _markers_request(asked))
            except ClientError as error:
                reason = error.reason
            else:
                told = {
                    (of_marker.producer_id, topic.name, partition.partition_index): partition.error_code
                    for of_marker in response.markers
                    for topic in of_marker.topics
                    for partition in topic.partitions
                }
        for each in asked:
            code = told.get((each.marker.producer_id, each.topic, each.partition), ErrorCode.NETWORK_EXCEPTION)
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                # The leader's metadata are behind. Only this broker decides that a topic is gone and needs no marker.
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            each.reply.complete(None if code == ErrorCode.NONE else KafkaError(error_of(code), reason))

    # ------------------------------------------------------------------------------------------------------------- verification

    async def _ask(
        self,
        node_id: int,
        transaction: AddPartitionsToTxnTransaction,
        partitions: frozenset[tuple[str, int]],
        reply: Reply[Verdicts],
    ) -> None:
        """Ask the coordinator. If partitions are added, retry while the producer's last transaction is being completed."""
        clock = self._timer.clock
        deadline_ms = clock.monotonic_ms() + self._max_retry_ms
        while True:
            verdicts = await self._ask_once(node_id, transaction, partitions)
            if transaction.verify_only or ErrorCode.CONCURRENT_TRANSACTIONS not in verdicts.values():
                break
            if clock.monotonic_ms() >= deadline_ms:
                break
            await Wakeup(self._timer).wait(self._retry_backoff_ms)
        reply.complete(verdicts)

    async def _ask_once(
        self, node_id: int, transaction: AddPartitionsToTxnTransaction, partitions: frozenset[tuple[str, int]]
    ) -> Verdicts:
        verdicts = dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        peer = self._peers.client_of(node_id)
        if peer is None:
            return verdicts
        try:
            response = await peer.client_for_verification().request(
                _VERIFY, AddPartitionsToTxnRequest(transactions=[transaction])
            )
        except ClientError:
            return verdicts
        if response.error_code:
            code = error_of(response.error_code)
            # As in Kafka, the producer is not told that this broker may not ask.
            told = ErrorCode.INVALID_TXN_STATE if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else code
            return dict.fromkeys(partitions, told)
        for result in response.results_by_transaction:
            for topic in result.topic_results:
                for partition in topic.results_by_partition:
                    verdicts[topic.name, partition.partition_index] = error_of(partition.partition_error_code)
        return verdicts


def _markers_request(asked: list[_PendingMarker]) -> WriteTxnMarkersRequest:
    by_marker: dict[EndTxnMarker, dict[str, list[int]]] = {}
    for each in asked:
        by_marker.setdefault(each.marker, {}).setdefault(each.topic, []).append(each.partition)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.is_commit,
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=indexes) for topic, indexes in by_topic.items()],
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
            for marker, by_topic in by_marker.items()
        ]
    )
