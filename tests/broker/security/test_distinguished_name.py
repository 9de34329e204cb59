"""Subjects as Java 17 writes them: each expectation is what its X500Principal.getName() gave for the same certificate."""

import contextlib
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

from odradek.broker.security.distinguished_name import subject_of
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
