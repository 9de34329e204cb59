"""Stores in every form, and a start that is refused with the key to mend, what is allowed, and no secret."""

import ssl
import subprocess
import sys

import pytest

from odradek.broker.security.tls.encodings import pem_blocks
from odradek.broker.security.tls.key_stores import load_key_store, load_server_key_store
from odradek.broker.security.tls.tls_context import client_context, server_context
from odradek.common.config.broker_config import load
from odradek.common.config.definitions import InvalidConfig
from tests.cases import each_case
from tests.java_key_stores import java_key_store, key_entry
from tests.needed import needed
from tests.tls import HOSTS, PASSWORD

SECRET = "a-secret-password"


def server(certificates, **ssl_configs):
    """The context of a listener with these configs beside those of ``certificates``; None leaves one out."""
    settings = certificates.settings(**{name: value for name, value in ssl_configs.items() if value is not None})
    for name, value in ssl_configs.items():
        if value is None:
            settings.pop(f"ssl.{name.replace('_', '.')}", None)
    config = load(None, {"listeners": "SSL://127.0.0.1:0", **settings})
    assert config.warnings == ()
    return context_of(config)


def context_of(config, listener="SSL"):
    """Of a listener of a broker."""
    config = config.listener_config(listener)
    return server_context(config, load_server_key_store(config))


def meets(context, client, host="localhost"):
    """Have client and server shake hands in memory; the subject's common name of either as the other sees it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [context.wrap_bio(to_server, to_client, server_side=True), client.wrap_bio(to_client, to_server, server_hostname=host)]
    waiting = ends[::-1]
    for _ in range(10):
        for end in tuple(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
    assert waiting == []
    subjects = [dict(pair[0] for pair in (end.getpeercert() or {}).get("subject", ())) for end in ends]
    return [subject.get("commonName") for subject in subjects]


PKCS12 = {"keystore_type": "PKCS12", "keystore_password": PASSWORD, "truststore_type": "PKCS12", "truststore_password": PASSWORD}


@pytest.mark.parametrize("form", ["PEM", "PEM in line", "PEM in one line", "encrypted PEM", "PKCS12", "PKCS12 as JKS"])
def test_a_store_of_every_form_serves_and_trusts(certificates, form):
    pem = certificates.broker.pem, certificates.broker.key_pem, certificates.authority.own.pem
    if form == "PEM":
        context = server(certificates, client_auth="required")
    elif form == "encrypted PEM":
        path = certificates.directory / "encrypted.pem"
        path.write_text(certificates.broker.pem + certificates.broker.encrypted_key_pem(SECRET))
        context = server(certificates, client_auth="required", keystore_location=str(path), key_password=SECRET)
    elif form.startswith("PEM"):
        chain, key, trusted = (" ".join(each.split("\n")) if form.endswith("one line") else each for each in pem)
        context = server(
            certificates,
            client_auth="required",
            keystore_location=None,
            truststore_location=None,
            keystore_key=key,
            keystore_certificate_chain=chain,
            truststore_certificates=trusted,
        )
    else:
        stores = {
            **PKCS12,
            "keystore_location": certificates.path("broker.p12"),
            "truststore_location": certificates.path("ca.p12"),
        }
        if form.endswith("JKS"):
            stores |= {"keystore_type": None, "truststore_type": None}
        context = server(certificates, client_auth="required", **stores)
    assert meets(context, certificates.client_context("orders")) == ["orders", "broker"]


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_stores_of_keytool_are_read(certificates, tmp_path, kind):
    def keytool(*arguments):
        command = [needed("keytool"), *map(str, arguments), "-storepass", PASSWORD, "-storetype", kind]
        subprocess.run([*command, *own_password], check=True, capture_output=True)

    # As keytool of old had it, the key of a JKS store has a password of its own.
    own_password = []

    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", certificates.path("ca.pem"), "-keystore", tmp_path / "trusted")
    own_password = ["-keypass", SECRET] if kind == "JKS" else []
    keytool(
        "-genkeypair",
        "-alias",
        "own",
        "-keyalg",
        "EC",
        "-dname",
        "CN=kept",
        "-ext",
        "san=dns:localhost",
        "-keystore",
        tmp_path / "kept",
    )
    stores = {
        **PKCS12,
        "keystore_type": None,
        "keystore_location": str(tmp_path / "kept"),
        "truststore_location": str(tmp_path / "trusted"),
        "key_password": SECRET if kind == "JKS" else None,
    }
    context = server(certificates, client_auth="required", **stores)
    client = certificates.client_context("orders")
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    assert meets(context, client)[0] == "orders"


def test_configs_of_a_listener_stand_before_the_brokers(certificates):
    own = {f"listener.name.second.{name}": value for name, value in certificates.settings(client_auth="required").items()}
    settings = {
        "listeners": "SSL://127.0.0.1:1,SECOND://127.0.0.1:2",
        "listener.security.protocol.map": "SSL:SSL,SECOND:SSL",
        **certificates.settings(keystore_location=certificates.path("stray.pem")),
        **own,
        "listener.name.second.ssl.keystore.location": certificates.path("broker.pem"),
    }
    config = load(None, settings)
    assert config.warnings == ()
    first, second = (context_of(config, name) for name in ("SSL", "SECOND"))
    assert meets(first, certificates.client_context(trusted="strangers")) == [None, "stray"]
    assert meets(second, certificates.client_context("orders")) == ["orders", "broker"]


def test_a_certificate_in_a_trust_store_is_trusted_though_its_issuer_is_not(certificates):
    alone = certificates.directory / "stranger-alone.pem"
    alone.write_text(certificates.stranger.pem)
    context = server(certificates, client_auth="required", truststore_location=str(alone))
    assert meets(context, certificates.client_context("stranger")) == ["stranger", "broker"]


def test_a_broker_that_connects_to_another_wants_its_host_unless_told_otherwise(certificates):
    elsewhere = certificates.write("elsewhere", certificates.authority.issue("elsewhere", ["elsewhere"]))
    context = server(certificates, keystore_location=str(elsewhere))

    def client(**ssl_configs):
        config = load(None, {"listeners": "SSL://:0", **certificates.settings(**ssl_configs)})
        config = config.listener_config("SSL")
        return client_context(config, load_key_store(config))

    with pytest.raises(ssl.SSLCertVerificationError, match="localhost"):
        meets(context, client())
    assert meets(context, client(endpoint_identification_algorithm="")) == [None, "elsewhere"]


def broken_file(certificates, name, content):
    path = certificates.directory / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@each_case(
    ("change", "key", "allowed"),
    [
        ({"keystore_location": None}, "keystore.location", "needs a certificate"),
        ({"keystore_location": "/nowhere.pem"}, "keystore.location", "can be read"),
        ({"keystore_location": "ca.pem"}, "keystore.location", "a private key in it"),
        ({"keystore_location": "orders.key"}, "keystore.location", "a certificate in it"),
        ({"keystore_location": "broker.p12"}, "keystore.location", "ssl.keystore.type must be set to the store's type"),
        ({"keystore_password": SECRET}, "keystore.password", "left out"),
        ({"keystore_key": SECRET}, "keystore.certificate.chain", "go together"),
        ({"keystore_certificate_chain": SECRET}, "keystore.key", "go together"),
        ({"keystore_key": SECRET, "keystore_certificate_chain": SECRET}, "keystore.location", "left out"),
        ({"keystore_key": SECRET, "keystore_certificate_chain": SECRET, "keystore_type": "JKS"}, "keystore.type", "PEM if"),
        (
            {"keystore_key": SECRET, "keystore_certificate_chain": SECRET, "keystore_location": None},
            "keystore.certificate.chain",
            "a certificate in it",
        ),
        ({"keystore_type": "PKCS12", "keystore_location": "broker.p12"}, "keystore.password", "set with"),
        ({"keystore_type": "PKCS12", "keystore_location": None, "keystore_password": SECRET}, "keystore.location", "set with"),
        (
            {"keystore_type": "PKCS12", "keystore_location": "broker.p12", "keystore_password": SECRET},
            "keystore.location",
            "ssl.keystore.password opens",
        ),
        (
            {"keystore_type": "PKCS12", "keystore_location": "broker.p12", "keystore_password": PASSWORD, "key_password": SECRET},
            "key.password",
            "one password",
        ),
        (
            {"keystore_type": "PKCS12", "keystore_location": "ca.p12", "keystore_password": PASSWORD},
            "keystore.location",
            "a private key and its certificate",
        ),
        ({"truststore_location": "orders.key"}, "truststore.location", "a certificate in it"),
        ({"truststore_certificates": SECRET}, "truststore.location", "left out"),
        ({"truststore_type": "PKCS12", "truststore_location": "ca.p12"}, "truststore.password", "without one"),
        ({"cipher_suites": "TLS_AES_128_GCM_SHA256"}, "cipher.suites", "all of TLS_AES_128_GCM_SHA256"),
        ({"cipher_suites": "TLS_NONE_SUCH"}, "cipher.suites", "it does not know TLS_NONE_SUCH"),
        ({"cipher_suites": "ECDHE-ECDSA-AES128-GCM-SHA256", "enabled_protocols": "TLSv1.3"}, "cipher.suites", "a version in"),
    ],
)
def test_a_store_that_cannot_be_used_stops_the_start(certificates, change, key, allowed):
    files = {
        name: certificates.path(value)
        for name, value in change.items()
        if name.endswith("location") and value and "/" not in value
    }
    with pytest.raises(InvalidConfig) as refusal:
        server(certificates, **{**change, **files})
    assert refusal.value.key == f"ssl.{key}"
    assert allowed in refusal.value.allowed
    assert SECRET not in str(refusal.value)


def test_a_key_of_another_certificate_or_with_another_password_stops_the_start(certificates):
    mixed = broken_file(certificates, "mixed.pem", certificates.broker.pem + certificates.orders.key_pem)
    with pytest.raises(InvalidConfig, match="the certificate of the private key"):
        server(certificates, keystore_location=mixed)
    encrypted = broken_file(
        certificates, "encrypted-2.pem", certificates.broker.pem + certificates.broker.encrypted_key_pem("right")
    )
    for password in (None, SECRET):
        with pytest.raises(InvalidConfig) as refusal:
            server(certificates, keystore_location=encrypted, key_password=password)
        assert refusal.value.key == "ssl.key.password"
        assert SECRET not in str(refusal.value)
    garbage = certificates.broker.pem.replace("MII", "MIJ", 1)
    with pytest.raises(InvalidConfig, match=r"ssl\.keystore\.location"):
        server(certificates, keystore_location=broken_file(certificates, "garbage.pem", garbage + certificates.broker.key_pem))
    with pytest.raises(InvalidConfig, match=r"ssl\.truststore\.location"):
        server(certificates, truststore_location=broken_file(certificates, "garbage-ca.pem", garbage))


def test_the_key_of_the_listener_is_told_where_that_is_wrong(certificates):
    name = "listener.name.ssl.ssl.keystore.location"
    config = load(None, {"listeners": "SSL://:0", **certificates.settings(), name: "/nowhere.pem"})
    with pytest.raises(InvalidConfig) as refusal:
        context_of(config)
    assert refusal.value.key == name


def test_pem_and_jks_are_served_without_cryptography_and_pkcs12_says_what_to_do(certificates):
    """In a process that cannot import it."""
    store = java_key_store([key_entry(certificates.broker, PASSWORD)], PASSWORD)
    java = certificates.settings(
        keystore_type="JKS", keystore_location=broken_file(certificates, "without.jks", store), keystore_password=PASSWORD
    )
    stores = certificates.settings(
        keystore_type="PKCS12", keystore_location=certificates.path("broker.p12"), keystore_password=PASSWORD
    )
    script = f"""
import sys
sys.modules["cryptography"] = None
from odradek.common.config.broker_config import load
from odradek.broker.security.tls.key_stores import load_server_key_store
from odradek.broker.security.tls.tls_context import server_context
def context_of(config):
    config = config.listener_config("SSL")
    server_context(config, load_server_key_store(config))
context_of(load(None, {certificates.settings()!r}))
context_of(load(None, {java!r}))
try:
    context_of(load(None, {stores!r}))
except Exception as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "ssl.keystore.type" in told
    assert "pip install 'odradek[tls]'" in told
    assert "openssl pkcs12 -in" in told


def test_every_host_of_the_broker_is_in_its_certificate(certificates):
    for host in HOSTS:
        assert meets(server(certificates), certificates.client_context(), host) == [None, "broker"]
    with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
        meets(server(certificates), certificates.client_context(), "elsewhere")


def test_no_private_key_is_told(certificates):
    config = load(None, {"listeners": "SSL://:0", **certificates.settings()}).listener_config("SSL")
    store = load_key_store(config)
    assert certificates.broker.key_pem in store.key
    assert certificates.broker.key_pem[40:80] not in repr((store, pem_blocks(store.key), config))
