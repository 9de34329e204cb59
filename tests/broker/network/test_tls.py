"""A broker's SSL listener over real sockets: who gets in, what is told where somebody does not, and what comes through."""

import os
import socket
import ssl

import pytest

from benchmarks.ports import free_ports
from odradek.protocol.api_keys import ApiKey
from tests.raw_client import RawClient, fetch_fields
from tests.tls import TlsClient, hello_of

# Far more than the sockets between the two hold.
BATCHES, BATCH_BYTES = 10, 1_000_000


@pytest.fixture
def tls_broker(broker_process, certificates):
    """A broker whose port is the SSL listener's: ``start(client_auth="required")``. ``plain_port`` is the other listener's."""

    def start(settings=None, **ssl_configs):
        (plain_port,) = free_ports(1)
        listeners = {"listeners": f"SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:{plain_port}"}
        broker = broker_process(settings={**listeners, **certificates.settings(**ssl_configs), **(settings or {})})
        broker.plain_port = plain_port
        return broker

    return start


def is_served(client):
    return client.call(ApiKey.API_VERSIONS, 0).error_code == 0


def failures(broker):
    return [line for line in broker.stderr.splitlines() if "TLS handshake failed" in line]


def wait_for_failure(broker, text):
    """Until the log has a line of a failed handshake with ``text``: the client may notice first."""
    with RawClient(broker.host, broker.plain_port) as client:
        for _ in range(1000):
            found = [line for line in failures(broker) if text in line]
            if found:
                assert "Traceback" not in broker.stderr
                return found[0]
            assert is_served(client)
    raise AssertionError(broker.stderr)


def refused(broker, context):
    """The error that the client meets: in the handshake, or, in TLS 1.3, where it first reads."""
    with pytest.raises(ssl.SSLError) as error:
        ask(broker, context)
    return str(error.value).lower()


def ask(broker, context):
    with TlsClient(broker, context) as client:
        client.call(ApiKey.API_VERSIONS, 0)


def test_a_client_that_trusts_the_broker_is_served_and_one_that_does_not_goes_away(tls_broker, certificates):
    broker = tls_broker()
    with TlsClient(broker, certificates.client_context()) as client:
        assert is_served(client)
        assert client.socket.version() == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        TlsClient(broker, certificates.client_context(trusted="strangers"))
    assert "127.0.0.1:" in wait_for_failure(broker, "does not trust the broker")


def test_a_client_finds_the_same_records_by_either_listener(tls_broker, certificates, new_name):
    broker = tls_broker()
    topic = new_name()
    batches = [os.urandom(BATCH_BYTES) for _ in range(BATCHES)]
    limits = {"max_bytes": 2 * BATCHES * BATCH_BYTES, "partition_max_bytes": 2 * BATCHES * BATCH_BYTES}
    with TlsClient(broker, certificates.client_context()) as client, RawClient(broker.host, broker.plain_port) as plain:
        client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": topic, "num_partitions": 1, "replication_factor": 1}])
        for batch in batches:
            assert client.produce(topic, batch).error_code == 0
        fetched = [each.call(ApiKey.FETCH, 12, **fetch_fields(topic, 0, **limits)) for each in (client, plain)]
    encrypted, clear = (bytes(response.responses[0].partitions[0].records) for response in fetched)
    assert encrypted == clear
    assert len(clear) > BATCHES * BATCH_BYTES
    assert all(batch in clear for batch in batches)


def test_requests_sent_in_one_piece_are_answered_in_order_behind_a_large_answer(tls_broker, certificates, new_name):
    broker = tls_broker()
    topic = new_name()
    with TlsClient(broker, certificates.client_context()) as client:
        client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": topic, "num_partitions": 1, "replication_factor": 1}])
        for _ in range(BATCHES):
            client.produce(topic, os.urandom(BATCH_BYTES))
        limits = {"max_bytes": 2 * BATCHES * BATCH_BYTES, "partition_max_bytes": 2 * BATCHES * BATCH_BYTES}
        for _ in range(3):
            client.send(ApiKey.FETCH, 12, **fetch_fields(topic, 0, **limits))
            client.send(ApiKey.API_VERSIONS, 0)
        sizes = [len(client.receive_frame()) for _ in range(6)]
    assert sizes[0] > BATCHES * BATCH_BYTES
    assert sizes == sizes[:2] * 3


def test_a_client_that_does_not_read_its_large_answer_holds_up_nobody(tls_broker, certificates, new_name):
    broker = tls_broker()
    topic = new_name()
    with TlsClient(broker, certificates.client_context()) as client, TlsClient(broker, certificates.client_context()) as other:
        client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": topic, "num_partitions": 1, "replication_factor": 1}])
        for _ in range(BATCHES):
            client.produce(topic, os.urandom(BATCH_BYTES))
        client.send(ApiKey.FETCH, 12, **fetch_fields(topic, 0, max_bytes=2**30, partition_max_bytes=2**30))
        assert all(is_served(other) for _ in range(100))
        assert len(client.receive_frame()) > BATCHES * BATCH_BYTES


def test_a_client_is_asked_for_a_certificate_if_one_is_required(tls_broker, certificates):
    broker = tls_broker(client_auth="required")
    with TlsClient(broker, certificates.client_context("orders")) as client:
        assert is_served(client)
    assert "certificate required" in refused(broker, certificates.client_context())
    wait_for_failure(broker, "sent no certificate")
    assert "unknown ca" in refused(broker, certificates.client_context("stranger"))
    wait_for_failure(broker, "is not trusted")


def test_a_certificate_that_is_requested_may_be_missing_and_not_wrong(tls_broker, certificates):
    broker = tls_broker(client_auth="requested")
    for name in (None, "orders"):
        with TlsClient(broker, certificates.client_context(name)) as client:
            assert is_served(client)
    refused(broker, certificates.client_context("stranger"))
    wait_for_failure(broker, "is not trusted")


def test_a_client_without_a_common_version_is_refused(tls_broker, certificates):
    broker = tls_broker(enabled_protocols="TLSv1.3")
    context = certificates.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
        TlsClient(broker, context)
    wait_for_failure(broker, "no TLS version of ssl.enabled.protocols")


def test_the_cipher_suite_is_one_of_those_that_are_named(tls_broker, certificates):
    broker = tls_broker(cipher_suites="TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256")
    with TlsClient(broker, certificates.client_context()) as client:
        assert is_served(client)
        assert client.socket.cipher()[:2] == ("ECDHE-ECDSA-CHACHA20-POLY1305", "TLSv1.2")
    context = certificates.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        TlsClient(broker, context)
    wait_for_failure(broker, "none of the cipher suites")


def test_a_client_that_speaks_no_tls_is_told_of_and_closed(tls_broker):
    broker = tls_broker()
    with RawClient(broker.host, broker.port) as client:
        client.send(ApiKey.API_VERSIONS, 0)
        client.receive_frame()
        line = wait_for_failure(broker, "check its security.protocol")
        assert client.address in line


def test_a_connection_that_is_opened_and_closed_is_no_failure(tls_broker, certificates):
    broker = tls_broker()
    socket.create_connection((broker.host, broker.port)).close()
    with TlsClient(broker, certificates.client_context()) as client:
        assert is_served(client)
    assert failures(broker) == []


def test_connections_are_limited_before_their_handshake(tls_broker, certificates):
    broker = tls_broker({"max.connections": 3})
    half_open = [socket.create_connection((broker.host, broker.port)) for _ in range(3)]
    with RawClient(broker.host, broker.port) as client:
        assert client.is_closed_by_peer()
    for each in half_open:
        each.close()


def test_a_thousand_half_open_handshakes_disturb_nobody(tls_broker, certificates):
    broker = tls_broker({"socket.listen.backlog.size": 2000})
    tls = certificates.client_context()
    begun = hello_of(tls)
    assert begun
    half_open = []
    try:
        with RawClient(broker.host, broker.plain_port) as plain:
            for number in range(1200):
                half_open.append(socket.create_connection((broker.host, broker.port)))
                if number % 3:
                    half_open[-1].sendall(begun[: len(begun) // (number % 3)])
                if not number % 100:
                    assert is_served(plain)
            assert is_served(plain)
        with TlsClient(broker, tls) as client:
            assert is_served(client)
    finally:
        for each in half_open:
            each.close()


def test_a_client_that_sends_no_more_is_still_answered(tls_broker, certificates, new_name):
    broker = tls_broker()
    topic = new_name()
    with TlsClient(broker, certificates.client_context()) as client:
        client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": topic, "num_partitions": 1, "replication_factor": 1}])
        client.send(ApiKey.FETCH, 12, **fetch_fields(topic, 0, max_wait_ms=200))
        with socket.socket(fileno=os.dup(client.socket.fileno())) as same:
            same.shutdown(socket.SHUT_WR)
        assert client.receive(ApiKey.FETCH, 12).responses[0].partitions[0].error_code == 0
        assert client.is_closed_by_peer()
