"""Names of certificates and cipher suites, and the principals that rules make of them."""

import contextlib
import ssl
from datetime import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.tls.certificate_names import NoMatchingRule, PrincipalMapper, subject_of
from odradek.broker.security.tls.tls_context import TLS_1_3_SUITES, openssl_name
from tests.cases import each_case

KEY = ec.generate_private_key(ec.SECP256R1())
BEGINS, ENDS = datetime(2024, 1, 1), datetime(2044, 1, 1)  # noqa: DTZ001  cryptography takes these for UTC
CN, O, OU, L = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.LOCALITY_NAME  # noqa: E741


def attribute(kind, value, asn1_type=None):
    kind = x509.ObjectIdentifier(kind) if isinstance(kind, str) else kind
    return x509.NameAttribute(kind, value, None if asn1_type is None else _ASN1Type[asn1_type])


def certificate(*relative_names):
    """Each relative name is one pair (type, value), or a list of them."""
    pairs = [name if isinstance(name, list) else [name] for name in relative_names]
    subject = x509.Name([x509.RelativeDistinguishedName([attribute(*pair) for pair in name]) for name in pairs])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(x509.Name([x509.NameAttribute(CN, "issuer")]))
    builder = builder.public_key(KEY.public_key()).serial_number(1).not_valid_before(BEGINS).not_valid_after(ENDS)
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.DER)


@each_case(
    ("relative_names", "written"),
    [
        ([], ""),
        (
            [
                (NameOID.COUNTRY_NAME, "DE"),
                (NameOID.STATE_OR_PROVINCE_NAME, "Berlin"),
                (L, "Mitte"),
                (O, "Example, Inc."),
                (OU, "Shop"),
                (CN, "orders"),
            ],
            r"CN=orders,OU=Shop,O=Example\, Inc.,L=Mitte,ST=Berlin,C=DE",
        ),
        ([(CN, ' a#b+c"d\\e<f>g;h=i ')], r"CN=\ a\#b\+c\"d\\e\<f\>g\;h\=i\ "),
        ([(CN, "#a  b  ")], r"CN=\#a  b\ \ "),
        ([(CN, "Müller € 中")], "CN=Müller € 中"),
        ([(CN, "a\0b\n\tc\r")], "CN=a\\00b\n\tc\\\r"),
        ([(CN, "x"), (NameOID.EMAIL_ADDRESS, "a@b.c")], "1.2.840.113549.1.9.1=#16056140622e63,CN=x"),
        ([(O, "O"), [(CN, "x"), (NameOID.USER_ID, "u"), (OU, "z")]], "CN=x+OU=z+UID=u,O=O"),
        (
            [(NameOID.DOMAIN_COMPONENT, "org"), (NameOID.DOMAIN_COMPONENT, "example"), (NameOID.STREET_ADDRESS, "1 Road")],
            "STREET=1 Road,DC=example,DC=org",
        ),
        (
            [(NameOID.SERIAL_NUMBER, "12"), (NameOID.TITLE, "Dr"), ("1.2.3.4.5", "odd"), ("2.999.1", "big")],
            "2.999.1=#0c03626967,1.2.3.4.5=#0c036f6464,2.5.4.12=#0c024472,2.5.4.5=#13023132",
        ),
        (
            [(CN, "wide", "BMPString"), (O, "t61", "T61String"), (L, "vis", "VisibleString"), (OU, "uni", "UniversalString")],
            r"OU=#1c0c000000750000006e00000069,L=#1a03766973,O=t61,CN=\00w\00i\00d\00e",
        ),
    ],
)
def test_a_subject_is_written_as_java_writes_it(relative_names, written):
    assert subject_of(certificate(*relative_names)) == written


@given(st.binary(max_size=200))
def test_bytes_that_are_no_certificate_are_refused(data):
    with pytest.raises(ValueError):
        subject_of(data)


WHOLE = certificate((CN, "x"))


@given(st.data())
def test_a_certificate_that_is_cut_is_refused(data):
    with pytest.raises(ValueError):
        subject_of(WHOLE[: data.draw(st.integers(0, len(WHOLE) - 1))])


@given(st.data())
def test_a_certificate_that_was_changed_is_read_or_refused(data):
    changed = bytearray(WHOLE)
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        assert isinstance(subject_of(bytes(changed)), str)


# ``ssl.principal.mapping.rules``, with the examples of Kafka's documentation (KIP-371) among them.
DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
ADMIN = "CN=Admin@Sub,OU=Admins,O=Org"


@each_case(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", DUKE, DUKE),
        (" DEFAULT ,", DUKE, DUKE),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", DUKE, "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", DUKE, "duke"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/U", DUKE, "DUKE@SERVICEUSERS"),
        ("RULE:^cn=none$/x/,RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1/,DEFAULT", ADMIN, "Admin@Sub"),
        ("RULE:^(OU)=no.*$/$1x/, DEFAULT", DUKE, DUKE),
        # A comma within a rule, and slashes in both halves.
        (r"RULE:CN=(\w+),OU=a\/b/$1\/x/", "CN=u,OU=a/b", "u/x"),
        # Named groups as Java has them, a group that does not take part, and a literal dollar.
        (r"RULE:CN=(?<who>\w+)(,OU=x)?.*/${who}$2/L", DUKE, "duke"),
        (r"RULE:CN=(\w+).*/\$1/", DUKE, "$1"),
        # Of a number too large, the digits that make a group's; and a number without a group as it is.
        ("RULE:CN=(.)(.*)/$12/", "CN=ab", "a2"),
        ("RULE:CN=(.*)/$1@$4/", "CN=ab", "ab@$4"),
        ("RULE:CN=(.*)/$0/", "CN=ab", "CN=ab"),
        # The whole of a name has to match, and all that matches is replaced, as by Java's replaceAll.
        ("RULE:CN=/x/,DEFAULT", DUKE, DUKE),
        ("RULE:.*/x/", DUKE, "xx"),
    ],
)
def test_the_first_rule_that_matches_gives_the_name(rules, name, mapped):
    assert PrincipalMapper(rules).name(name) == mapped


@pytest.mark.parametrize("rules", ["", " , ", "RULE:^CN=none$/x/"])
def test_a_name_without_a_rule_has_no_principal(rules):
    with pytest.raises(NoMatchingRule, match="Duke"):
        PrincipalMapper(rules).name(DUKE)


@each_case(
    "rules",
    [
        "default",
        "DEFAULTS",
        "DEFAULT DEFAULT",
        "RULE:",
        "RULE:a",
        "RULE:a/b",
        "RULE:a/b/X",
        "RULE:a/b/LL",
        "RULE:(/b/",
        "RULE:a/$1/",
        "RULE:(a)/${who}/",
    ],
)
def test_rules_that_cannot_be_read_are_refused(rules):
    with pytest.raises(ValueError):
        PrincipalMapper(rules)


# The names of cipher suites in the standard and in OpenSSL.
@each_case(
    ("suite", "name"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE-ECDSA-AES128-CCM8"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_openssl_has_every_suite_by_the_name_that_is_made_for_it(suite, name):
    assert openssl_name(suite) == name
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    assert name in {each["name"] for each in context.get_ciphers()}


def test_the_suites_of_tls_1_3_are_those_that_openssl_has():
    ciphers = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).get_ciphers()
    assert {each["name"] for each in ciphers if each["protocol"] == "TLSv1.3"} == TLS_1_3_SUITES
