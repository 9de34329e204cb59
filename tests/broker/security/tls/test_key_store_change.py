"""A key store that takes the place of another: which are refused as in Kafka, and that nothing of a refused one is in force.

Each expectation of the table is what the CertificateEntries of Kafka 4.3's SslFactory said of the same certificates, on Java 17.
"""

import ipaddress
from datetime import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import ExtensionOID, NameOID

from odradek.broker.security.tls.key_stores import KeyStore
from odradek.broker.security.tls.tls_listeners import TlsClient, TlsListeners, check_key_store_change
from odradek.common.config.broker_config import load
from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.listener_config import parse_endpoints
from odradek.testing.certificates import CertificateAuthority
from tests.broker.security.tls.test_stores import broken_file, meets
from tests.cases import each_case
from tests.tls import HOSTS

KEY = ec.generate_private_key(ec.SECP256R1())
BEGINS, ENDS = datetime(2024, 1, 1), datetime(2044, 1, 1)  # noqa: DTZ001  cryptography takes these for UTC
CN, OU, DC, EMAIL = NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.DOMAIN_COMPONENT, NameOID.EMAIL_ADDRESS
DNS, IP, MAIL = x509.DNSName, lambda text: x509.IPAddress(ipaddress.ip_address(text)), x509.RFC822Name
ISSUER = x509.Name([x509.NameAttribute(CN, "issuer")])
BETWEEN = {"security.inter.broker.protocol": "SSL"}
SUBJECT, NAMES = "ssl.allow.dn.changes", "ssl.allow.san.changes"


def certificate(pairs, *names, extension=None):
    """With this subject and these alternative names, or an extension in their place."""
    attributes = [x509.NameAttribute(kind, text, _ASN1Type[form[0]] if form else None) for kind, text, *form in pairs]
    builder = x509.CertificateBuilder().subject_name(x509.Name(attributes)).issuer_name(ISSUER)
    builder = builder.public_key(KEY.public_key()).serial_number(1).not_valid_before(BEGINS).not_valid_after(ENDS)
    if names or extension:
        builder = builder.add_extension(extension or x509.SubjectAlternativeName(names), critical=len(names) > 1)
    return builder.sign(KEY, SHA256())


CHANGES = {
    "none": ([(CN, "a")], [(CN, "a")], None),
    "another name": ([(CN, "a")], [(CN, "b")], SUBJECT),
    "case": ([(CN, "Broker")], [(CN, "bROKER")], None),
    "spaces": ([(CN, "a  b ")], [(CN, " a b")], None),
    "form of string": ([(CN, "a", "UTF8String")], [(CN, "a", "PrintableString")], None),
    "accents in two ways": ([(CN, "\u00e9 \ufb01")], [(CN, "E\u0301 fi")], None),
    "order": ([(OU, "b"), (CN, "a")], [(CN, "a"), (OU, "b")], SUBJECT),
    "one more": ([(CN, "a")], [(OU, "b"), (CN, "a")], SUBJECT),
    "no subject": ([(CN, "a")], [], SUBJECT),
    "case of a form that is compared as it is written": ([(DC, "a", "IA5String")], [(DC, "A", "IA5String")], None),
    "spaces in such a form": ([(DC, "a  b", "IA5String")], [(DC, "a b", "IA5String")], SUBJECT),
    "case of what has no name": ([(EMAIL, "a@b.c")], [(EMAIL, "A@b.c")], SUBJECT),
}
CHANGES_OF_NAMES = {
    "none": ([DNS("a"), IP("::1")], [IP("::1"), DNS("a")], None),
    "one more": ([DNS("a")], [DNS("a"), DNS("b")], None),
    "first": ([], [DNS("a")], None),
    "one less": ([DNS("a"), DNS("b")], [DNS("a")], "DNS:b"),
    "all": ([DNS("a"), MAIL("a@b.c"), IP("127.0.0.1")], [], "DNS:a, IP:127.0.0.1, email:a@b.c"),
    "case": ([DNS("a")], [DNS("A")], "DNS:a"),
    "another address": ([IP("10.0.0.1")], [IP("10.0.0.2")], "IP:10.0.0.1"),
    "kind": ([DNS("10.0.0.1")], [IP("10.0.0.1")], "DNS:10.0.0.1"),
    "another URI": ([x509.UniformResourceIdentifier("spiffe://a")], [DNS("a")], "URI:spiffe://a"),
}


def refusal_of(before, after, **allowed):
    """What is said of the change between two certificates; None if it is allowed."""
    stores = [KeyStore(each.public_bytes(Encoding.PEM).decode(), "", is_encrypted=False) for each in (before, after)]
    settings = {f"ssl.allow.{name}.changes": "true" for name, is_allowed in allowed.items() if is_allowed}
    config = load(None, {"listeners": "SSL://:0", **settings})
    assert config.warnings == ()
    try:
        check_key_store_change(config.listener_config("SSL"), *stores)
    except InvalidConfig as error:
        return error.allowed
    return None


@each_case("change", CHANGES)
def test_another_subject_is_refused_unless_that_is_allowed(change):
    before, after, key = CHANGES[change]
    told = refusal_of(certificate(before), certificate(after), san=True)
    assert told is None if key is None else f"unless {key} is true" in told
    assert refusal_of(certificate(before), certificate(after), dn=True) is None


@each_case("change", CHANGES_OF_NAMES)
def test_a_certificate_without_a_name_of_the_former_one_is_refused_unless_that_is_allowed(change):
    before, after, lacking = CHANGES_OF_NAMES[change]
    before, after = certificate([(CN, "a")], *before), certificate([(CN, "a")], *after)
    told = refusal_of(before, after, dn=True)
    assert told is None if lacking is None else f"({lacking}), unless {NAMES} is true" in told
    assert refusal_of(before, after, san=True) is None


def test_names_that_cannot_be_read_are_no_fault_of_the_brokers():
    junk = certificate([(CN, "a")], extension=x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"\x30\x09"))
    assert refusal_of(junk, certificate([(CN, "a")])) == "a certificate whose names can be read"


@pytest.fixture(scope="module")
def issued(certificates):
    """More stores: of the same subject and hosts (again, strange), of another host (elsewhere), of another subject (other)."""
    strangers = CertificateAuthority.make("strangers")
    certificates.write("again", certificates.authority.issue("broker", HOSTS))
    certificates.write("elsewhere", certificates.authority.issue("broker", ["elsewhere"]))
    certificates.write("other", certificates.authority.issue("other", HOSTS))
    certificates.write("strange", strangers.issue("broker", HOSTS))
    broken_file(certificates, "strange-ca.pem", strangers.own.pem)
    broken_file(certificates, "both.pem", certificates.authority.own.pem + strangers.own.pem)
    return certificates


def listening(certificates, overrides=None, **settings):
    """A broker's config and its listener, which is told of alterations; ``overrides`` are kept from before its start."""
    config = load(None, {"listeners": "SSL://127.0.0.1:0", **certificates.settings(), **settings})
    listeners = TlsListeners(config, parse_endpoints("listeners", config["listeners"]))
    config.watch(listeners.check, listeners.reload)
    config.override(overrides or {})
    return config, listeners


def alter(config, **ssl_configs):
    """Set configs of the listener, unless that is refused."""
    texts = {f"listener.name.ssl.ssl.{name.replace('_', '.')}": value for name, value in ssl_configs.items()}
    config.overridden({}, texts)
    config.override({}, texts)


@pytest.mark.parametrize(("name", "key"), [("other", SUBJECT), ("elsewhere", NAMES)])
def test_a_listener_is_altered_to_other_names_only_where_that_is_allowed(issued, name, key):
    config, listeners = listening(issued)
    in_force = listeners["SSL"]
    with pytest.raises(InvalidConfig, match=f"unless {key} is true") as refusal:
        alter(config, keystore_location=issued.path(f"{name}.pem"))
    assert refusal.value.key == "listener.name.ssl.ssl.keystore.location"
    assert listeners["SSL"] is in_force
    config, listeners = listening(issued, **{key: "true"})
    alter(config, keystore_location=issued.path(f"{name}.pem"))
    client = issued.client_context()
    client.check_hostname = False
    assert meets(listeners["SSL"].context, client) == [None, "other" if name == "other" else "broker"]


@pytest.mark.parametrize("form", ["pem", "jks"])
def test_a_file_with_other_names_is_not_loaded_again_and_one_with_the_same_is(issued, tmp_path, form):
    path = tmp_path / "own"

    def put(name):
        path.write_bytes((issued.directory / f"{name}.{form}").read_bytes())

    put("broker")
    stores = issued.settings(keystore_location=str(path)) if form == "pem" else issued.java_settings(keystore_location=str(path))
    config, listeners = listening(issued, **stores)
    client = TlsClient(config, "SSL")
    before = listeners["SSL"], client.context()
    put("other")
    config.override()
    assert (listeners["SSL"], client.context()) == before
    put("again")
    config.override()
    assert listeners["SSL"] is not before[0]
    assert client.context() is not before[1]
    assert meets(listeners["SSL"].context, issued.client_context()) == [None, "broker"]


@pytest.mark.parametrize("name", ["other", "strange"])
def test_at_a_start_stores_that_were_altered_before_take_the_place_of_the_files(issued, name):
    """They were allowed then, step by step."""
    kept = {"keystore": f"{name}.pem", "truststore": "ca.pem" if name == "other" else "strange-ca.pem"}
    overrides = {f"listener.name.ssl.ssl.{store}.location": issued.path(file) for store, file in kept.items()}
    config, listeners = listening(issued, overrides, **BETWEEN)
    client = issued.client_context(trusted="both")
    assert meets(listeners["SSL"].context, client) == [None, "other" if name == "other" else "broker"]
    with pytest.raises(InvalidConfig, match="trust each other" if name == "strange" else SUBJECT):
        alter(config, keystore_location=issued.path("broker.pem"))


def test_at_a_start_a_broker_connects_with_stores_that_were_altered_before(issued):
    config = load(None, {"listeners": "SSL://:0", **issued.settings()})
    client = TlsClient(config, "SSL")
    client.context()
    config.override({"listener.name.ssl.ssl.keystore.location": issued.path("other.pem")})
    context = listening(issued, **issued.settings(client_auth="required"))[1]["SSL"].context
    assert meets(context, client.context()) == ["other", "broker"]


def test_brokers_have_to_be_able_to_connect_with_the_stores_of_the_listener_between_them(issued):
    strangers = issued.settings(truststore_location=issued.path("strangers.pem"))
    listening(issued, **strangers)
    with pytest.raises(InvalidConfig, match=r"trust each other \(certificate verify failed") as refusal:
        listening(issued, **strangers, **BETWEEN)
    assert refusal.value.key == "ssl.truststore.location"
    listening(issued, **issued.settings(keystore_location=issued.path("elsewhere.pem"), client_auth="required"), **BETWEEN)


@pytest.mark.parametrize(
    ("client_auth", "stores"),
    [
        # Those in force do not trust the new certificate, as a server's or as a client's.
        ("none", {"keystore": "strange.pem", "truststore": "both.pem"}),
        ("required", {"keystore": "strange.pem", "truststore": "both.pem"}),
        # The new ones do not trust the certificate in force.
        ("none", {"truststore": "strange-ca.pem"}),
        ("required", {"truststore": "strange-ca.pem"}),
    ],
)
def test_stores_with_which_a_broker_could_not_connect_to_the_others_are_refused(issued, client_auth, stores):
    config, _ = listening(issued, **issued.settings(client_auth=client_auth), **BETWEEN)
    with pytest.raises(InvalidConfig, match="trust each other"):
        alter(config, **{f"{store}_location": issued.path(name) for store, name in stores.items()})


def test_stores_between_brokers_are_altered_in_steps_in_which_each_trusts_the_others(issued):
    config, listeners = listening(issued, **issued.settings(client_auth="required"), **BETWEEN)
    old, both, new = (issued.path(f"{name}.pem") for name in ("broker", "both", "strange"))
    for stores in (
        {"keystore_location": old, "truststore_location": both},
        {"keystore_location": new, "truststore_location": both},
        {"keystore_location": new, "truststore_location": issued.path("strange-ca.pem")},
    ):
        alter(config, **stores)
    client = issued.client_context(trusted="strange-ca")
    client.load_cert_chain(new)
    assert meets(listeners["SSL"].context, client) == ["broker", "broker"]
