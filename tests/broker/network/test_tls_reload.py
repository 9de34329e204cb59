"""Stores that are loaded again while the broker runs (KIP-226)."""

import shutil
from pathlib import Path

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.network.test_tls import is_served
from tests.tls import HOSTS, TlsClient

BROKER = 4
SET = 0
KEY_STORE = "listener.name.ssl.ssl.keystore.location"
TRUST_STORE = "listener.name.ssl.ssl.truststore.location"


@pytest.fixture
def own(certificates, tmp_path):
    """A path in a directory of the test's own, with what is to be there."""

    def put(name, source):
        path = tmp_path / name
        written = tmp_path / f"{name}.new"
        shutil.copy(certificates.path(source), written)
        written.replace(path)
        return str(path)

    return put


@pytest.fixture
def tls_broker(broker_process, certificates, own):
    settings = certificates.settings(keystore_location=own("own.pem", "broker.pem"), client_auth="requested")
    return broker_process(settings={"listeners": "SSL://127.0.0.1:0", **settings})


def alter(client, **configs):
    """The error code and message; ``configs`` are by the names of this module's constants."""
    operations = [{"name": globals()[name], "config_operation": SET, "value": value} for name, value in configs.items()]
    asked = [{"resource_type": BROKER, "resource_name": "1", "configs": operations}]
    [response] = client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=asked).responses
    return response.error_code, response.error_message


def serial(client):
    return client.socket.getpeercert()["serialNumber"]


def test_a_key_store_that_is_told_again_is_loaded_from_its_file(tls_broker, certificates, own):
    context = certificates.client_context()
    with TlsClient(tls_broker, context) as before:
        certificates.write("renewed", certificates.authority.issue("broker", HOSTS))
        path = own("own.pem", "renewed.pem")
        # The file alone changes nothing.
        with TlsClient(tls_broker, context) as client:
            assert serial(client) == serial(before)
        assert alter(before, KEY_STORE=path) == (ErrorCode.NONE, None)
        with TlsClient(tls_broker, context) as client:
            renewed = serial(client)
            assert renewed != serial(before)
            assert is_served(client)
        assert is_served(before)
    tls_broker.restart()
    with TlsClient(tls_broker, context) as client:
        assert serial(client) == renewed


def test_a_trust_store_that_is_altered_lets_others_in(tls_broker, certificates):
    with TlsClient(tls_broker, certificates.client_context("orders")) as client:
        assert alter(client, TRUST_STORE=certificates.path("strangers.pem")) == (ErrorCode.NONE, None)
        with TlsClient(tls_broker, certificates.client_context("stranger")) as stranger:
            assert is_served(stranger)
        with pytest.raises(OSError), TlsClient(tls_broker, certificates.client_context("orders")) as refused:
            is_served(refused)
        assert is_served(client)


def test_a_store_that_cannot_be_loaded_is_refused_and_the_old_one_stays(tls_broker, certificates, own):
    with TlsClient(tls_broker, certificates.client_context()) as client:
        code, message = alter(client, KEY_STORE="/nowhere.pem")
        assert code == ErrorCode.INVALID_REQUEST
        assert KEY_STORE in message
        code, message = alter(client, KEY_STORE=certificates.path("ca.pem"))
        assert code == ErrorCode.INVALID_REQUEST
        assert "a private key" in message
        code, message = alter(client, KEY_STORE=certificates.path("orders.pem"))
        assert code == ErrorCode.INVALID_REQUEST
        assert "ssl.allow.dn.changes" in message
        with TlsClient(tls_broker, certificates.client_context()) as other:
            assert serial(other) == serial(client)


def test_a_file_that_cannot_be_loaded_again_is_refused_and_hinders_nothing_else(tls_broker, certificates, own):
    with TlsClient(tls_broker, certificates.client_context()) as client:
        before = serial(client)
        path = own("own.pem", "ca.pem")
        asked = [{"resource_type": BROKER, "resource_name": "1", "configs": [{"name": "max.connections", "value": "50"}]}]
        [response] = client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=asked).responses
        assert response.error_code == ErrorCode.NONE
        assert "cannot reload stores" in tls_broker.stderr
        code, message = alter(client, KEY_STORE=path)
        assert code == ErrorCode.INVALID_REQUEST
        assert "a private key" in message
        with TlsClient(tls_broker, certificates.client_context()) as other:
            assert serial(other) == before
            assert is_served(other)


@pytest.mark.parametrize("renewed", ["ca.pem", "orders.pem", None], ids=["no key", "another subject", "no file"])
def test_a_store_that_is_told_again_and_cannot_be_loaded_is_refused_once_it_is_stored(tls_broker, certificates, own, renewed):
    path = own("own.pem", "broker.pem")
    with TlsClient(tls_broker, certificates.client_context()) as client:
        assert alter(client, KEY_STORE=path) == (ErrorCode.NONE, None)
        Path(path).unlink()
        if renewed is not None:
            own("own.pem", renewed)
        code, message = alter(client, KEY_STORE=path)
        assert code == ErrorCode.INVALID_REQUEST
        assert KEY_STORE in message
        certificates.write("renewed", certificates.authority.issue("broker", HOSTS))
        own("own.pem", "renewed.pem")
        assert alter(client, KEY_STORE=path) == (ErrorCode.NONE, None)
        with TlsClient(tls_broker, certificates.client_context()) as other:
            assert serial(other) != serial(client)


def test_a_config_of_all_listeners_is_refused_and_the_answer_names_that_of_one(tls_broker, certificates):
    asked = [{"resource_type": BROKER, "resource_name": "1", "configs": [{"name": "ssl.keystore.location", "value": "x"}]}]
    with TlsClient(tls_broker, certificates.client_context()) as client:
        [response] = client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=asked).responses
    assert response.error_message == (
        "These security configs can be dynamically updated only per-listener using the listener prefix: ssl.keystore.location. "
        "Alter listener.name.<listener>.ssl.keystore.location of one broker"
    )


def test_a_stored_config_whose_file_is_gone_leaves_the_brokers_own_in_force(tls_broker, certificates, own, tmp_path):
    path = own("other.pem", "broker.pem")
    with TlsClient(tls_broker, certificates.client_context()) as client:
        assert alter(client, KEY_STORE=path) == (ErrorCode.NONE, None)
    tls_broker.stop()
    (tmp_path / "other.pem").unlink()
    tls_broker.start()
    with TlsClient(tls_broker, certificates.client_context()) as client:
        assert is_served(client)
    assert "cannot reload stores" in tls_broker.stderr
