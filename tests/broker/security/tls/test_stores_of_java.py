"""Listeners and clients with stores of JKS: what is served and trusted, and what is told of a store that cannot be used."""

import dataclasses

import pytest

from odradek.broker.security.tls.key_stores import load_key_store
from odradek.broker.security.tls.tls_context import client_context
from odradek.common.config.broker_config import load
from odradek.common.config.definitions import InvalidConfig
from tests.broker.security.tls.test_stores import broken_file, meets, server
from tests.cases import each_case
from tests.java_key_stores import PROTECTION, Key, java_key_store, key_entry, trusted_entry
from tests.tls import PASSWORD

SECRET = "a-secret-password"


@pytest.fixture(scope="module")
def stores(certificates):
    """With more files; in ``own.jks`` the key has a password of its own."""
    broker, orders, authority = certificates.broker, certificates.orders, certificates.authority.own
    files = {
        "own": [key_entry(broker, SECRET)],
        "all": [trusted_entry(authority), key_entry(broker, PASSWORD), key_entry(orders, PASSWORD, "orders")],
        "chainless": [key_entry(broker, PASSWORD)._replace(chain=())],
        "garbage": [Key(b"no key", (b"no certificate",), PASSWORD)],
    }
    for name, entries in files.items():
        broken_file(certificates, f"{name}.jks", java_key_store(entries, PASSWORD))
    keys = [key_entry(broker, PASSWORD)]
    broken_file(certificates, "jceks.jks", java_key_store(keys, PASSWORD, magic=0xCECECECE))
    broken_file(certificates, "cut.jks", java_key_store(keys, PASSWORD)[:100])
    broken_file(certificates, "none.jks", b"no store")
    altered = PROTECTION.replace(b"\x11\x01\x01", b"\x13\x01\x01")
    broken_file(certificates, "protected.jks", java_key_store(keys, PASSWORD, algorithm=altered))
    return certificates


def java_server(stores, **change):
    """The context of a listener with stores of JKS; None leaves a config out, and a file is told by its name."""
    configs = {name.removeprefix("ssl.").replace(".", "_"): value for name, value in stores.java_settings().items()}
    files = {name: stores.path(value) for name, value in change.items() if name.endswith("location")}
    return server(stores, **configs | change | files)


@pytest.mark.parametrize(
    "ssl_configs",
    [
        {},
        {"key_password": PASSWORD},
        {"keystore_location": "own.jks", "key_password": SECRET},
        # As in Java, which tells JKS from PKCS12 by what is in the file.
        {"keystore_type": "PKCS12", "truststore_type": "PKCS12"},
        {"keystore_type": None, "truststore_type": None},
        # As in Kafka: nothing shows then that it is whole.
        {"truststore_password": None},
        # The first key is served.
        {"keystore_location": "all.jks", "truststore_location": "all.jks"},
    ],
)
def test_stores_of_jks_serve_and_trust(stores, ssl_configs):
    context = java_server(stores, client_auth="required", **ssl_configs)
    assert meets(context, stores.client_context("orders")) == ["orders", "broker"]


def test_a_client_shows_and_trusts_by_stores_of_jks(stores):
    settings = stores.java_settings(keystore_location=stores.path("orders.jks"))
    config = load(None, settings).listener_config("SSL")
    client = client_context(config, load_key_store(config))
    assert meets(java_server(stores, client_auth="required"), client) == ["orders", "broker"]


@pytest.mark.parametrize("form", ["jks", "p12"])
def test_a_certificate_that_has_its_key_in_the_trust_store_is_trusted(stores, form):
    """As in Java. Its issuer is not."""
    alone = dataclasses.replace(stores.stranger, authority=None)
    store = java_key_store([key_entry(stores.stranger, PASSWORD)], PASSWORD) if form == "jks" else alone.pkcs12(PASSWORD)
    broken_file(stores, f"alone.{form}", store)
    context = java_server(stores, client_auth="required", truststore_location=f"alone.{form}")
    assert meets(context, stores.client_context("stranger")) == ["stranger", "broker"]


@each_case(
    ("change", "key", "allowed"),
    [
        ({"keystore_password": SECRET}, "keystore.password", "the password of "),
        ({"truststore_password": SECRET}, "truststore.password", "the password of "),
        ({"keystore_password": None}, "keystore.password", "set with"),
        ({"keystore_location": "own.jks"}, "key.password", "password is not the store's"),
        ({"key_password": SECRET}, "key.password", "the password of the private key"),
        ({"keystore_location": "ca.jks"}, "keystore.location", "a private key and its certificate"),
        ({"keystore_location": "chainless.jks"}, "keystore.location", "a private key and its certificate"),
        ({"truststore_location": "chainless.jks"}, "truststore.location", "a certificate in it"),
        ({"keystore_location": "garbage.jks"}, "keystore.location", "that can be used"),
        ({"truststore_location": "garbage.jks"}, "truststore.location", "can be read"),
        ({"keystore_location": "cut.jks"}, "keystore.location", "an intact JKS store (it is truncated"),
        (
            {"truststore_location": "cut.jks", "truststore_password": None},
            "truststore.location",
            "an intact JKS store (it is truncated",
        ),
        ({"keystore_location": "protected.jks"}, "keystore.location", "not encrypted with the algorithm of JKS"),
        ({"keystore_location": "none.jks"}, "keystore.location", "JKS or PKCS12 store, or ssl.keystore.type must be set"),
        ({"truststore_location": "broker.pem"}, "truststore.location", "or ssl.truststore.type must be set"),
        ({"keystore_location": "jceks.jks"}, "keystore.location", "keytool -importkeystore -srcstoretype JCEKS"),
        ({"truststore_location": "jceks.jks"}, "truststore.location", "keytool -importkeystore -srcstoretype JCEKS"),
    ],
)
def test_a_store_of_jks_that_cannot_be_used_stops_the_start(stores, change, key, allowed):
    with pytest.raises(InvalidConfig) as refusal:
        java_server(stores, **change)
    assert refusal.value.key == f"ssl.{key}"
    assert allowed in refusal.value.allowed
    for secret in (SECRET, PASSWORD):
        assert secret not in str(refusal.value)
