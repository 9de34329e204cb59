"""JKS, read: what a writer of our own and Java's keytool have written, and whatever such a file may become."""

import subprocess

import pytest
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import load_der_x509_certificate
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.security.tls.encodings import JavaKeyStoreError, WrongPassword, read_java_key_store
from tests.java_key_stores import PROTECTION, Key, Trusted, java_key_store, key_entry, trusted_entry
from tests.needed import needed

PASSWORD = "changeit"
OTHER = "an-other-password"
DIGEST_BYTES = 20
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
CERTIFICATES = st.binary(max_size=40)
ENTRIES = st.lists(
    st.one_of(
        st.builds(Key, st.binary(max_size=50), st.lists(CERTIFICATES, max_size=3).map(tuple), TEXT, TEXT),
        st.builds(Trusted, CERTIFICATES, TEXT),
    ),
    max_size=4,
)
STORE = java_key_store([Key(b"the key", (b"own", b"authority"), PASSWORD), Trusted(b"trusted")], PASSWORD)


@given(entries=ENTRIES, password=TEXT, version=st.sampled_from([1, 2]), checked=st.booleans())
def test_what_is_written_is_read(entries, password, version, checked):
    read = read_java_key_store(java_key_store(entries, password, version), password if checked else None)
    keys = [entry for entry in entries if isinstance(entry, Key)]
    assert [entry.chain for entry in read.private_keys] == [entry.chain for entry in keys]
    assert [entry.key(key.password) for entry, key in zip(read.private_keys, keys, strict=True)] == [key.key for key in keys]
    assert read.trusted_certificates == tuple(entry.certificate for entry in entries if isinstance(entry, Trusted))


def test_a_password_counts_as_javas_characters_of_16_bits():
    assert read_java_key_store(java_key_store([], "\U0001f511é"), "\U0001f511é").private_keys == ()


def test_a_store_that_is_cut_anywhere_is_refused():
    for size in range(len(STORE)):
        with pytest.raises(JavaKeyStoreError):
            read_java_key_store(STORE[:size], PASSWORD)


def test_without_a_password_the_digest_is_not_looked_at():
    content = STORE[:-DIGEST_BYTES]
    assert read_java_key_store(content, None) == read_java_key_store(STORE, PASSWORD)
    for size in range(len(content)):
        with pytest.raises(JavaKeyStoreError):
            read_java_key_store(content[:size], None)


@pytest.mark.parametrize("flipped", [0x01, 0x80, 0xFF])
def test_a_store_with_any_byte_altered_is_refused(flipped):
    for place in range(len(STORE)):
        altered = STORE[:place] + bytes([STORE[place] ^ flipped]) + STORE[place + 1 :]
        with pytest.raises((JavaKeyStoreError, WrongPassword)):
            read_java_key_store(altered, PASSWORD)


@settings(max_examples=300)
@given(data=st.binary(max_size=200), whole=st.booleans(), version=st.integers(0, 3), count=st.integers(0, 3))
def test_any_bytes_are_read_or_refused(data, whole, version, count):
    head = b"\xfe\xed\xfe\xed" + version.to_bytes(4, "big") + count.to_bytes(4, "big") if whole else b""
    for password in (None, PASSWORD):
        try:
            keys = read_java_key_store(head + data, password).private_keys
        except (JavaKeyStoreError, WrongPassword):
            continue
        for entry in keys:
            with pytest.raises((JavaKeyStoreError, WrongPassword)):
                entry.key(PASSWORD)


@given(octets=st.binary(max_size=80), place=st.integers(0, 200))
def test_a_protected_key_that_is_altered_is_refused(octets, place):
    [entry] = read_java_key_store(java_key_store([Key(b"key", (b"own",), PASSWORD)], PASSWORD), PASSWORD).private_keys
    info = entry.protected_key
    for altered in (octets, info[: place % len(info)], info[: place % len(info)] + octets):
        if altered == info:
            continue
        with pytest.raises((JavaKeyStoreError, WrongPassword)):
            type(entry)(entry.chain, altered).key(PASSWORD)


def test_a_wrong_password_is_told_from_a_store_that_is_none():
    with pytest.raises(WrongPassword):
        read_java_key_store(STORE, OTHER)
    [entry] = read_java_key_store(STORE, PASSWORD).private_keys
    with pytest.raises(WrongPassword):
        entry.key(OTHER)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (java_key_store([], PASSWORD, magic=0xCECECECE), "does not begin with the magic number"),
        (java_key_store([], PASSWORD, version=3), "version is 3"),
        (STORE[:12] + b"\0\0\0\3" + STORE[16:], "kind 3"),
        (STORE.replace(b"X.509", b"X.400"), "not X.509"),
    ],
    ids=["JCEKS", "version is 3", "a secret key", "another certificate"],
)
def test_a_store_of_another_kind_is_told(data, told):
    with pytest.raises(JavaKeyStoreError, match=told):
        read_java_key_store(data, PASSWORD)


def test_a_key_that_is_protected_in_another_way_is_told():
    other = PROTECTION.replace(b"\x11\x01\x01", b"\x13\x01\x01")
    [entry] = read_java_key_store(java_key_store([Key(b"k", (), PASSWORD)], PASSWORD, algorithm=other), PASSWORD).private_keys
    with pytest.raises(JavaKeyStoreError, match="not encrypted with the algorithm of JKS"):
        entry.key(PASSWORD)


def test_no_key_is_told():
    store = read_java_key_store(STORE, PASSWORD)
    assert repr(store.private_keys[0].protected_key) not in repr(store)


def keytool(*arguments):
    command = [needed("keytool"), "-J-Xshare:auto", "-J-XX:TieredStopAtLevel=1", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_store_of_keytools_is_read(certificates, tmp_path):
    path = tmp_path / "store.jks"
    for algorithm, name in (("EC", "first"), ("RSA", "second")):
        keytool(
            *("-genkeypair", "-alias", name, "-keyalg", algorithm, "-dname", f"CN={name}", "-keystore", path),
            *("-storetype", "JKS", "-storepass", PASSWORD, "-keypass", OTHER),
        )
    keytool(
        *("-importcert", "-noprompt", "-alias", "ca", "-file", certificates.path("ca.pem"), "-keystore", path),
        *("-storepass", PASSWORD),
    )
    store = read_java_key_store(path.read_bytes(), PASSWORD)
    assert store == read_java_key_store(path.read_bytes(), None)
    assert store.trusted_certificates == (trusted_entry(certificates.authority.own).certificate,)
    names = set()
    for entry in store.private_keys:
        [certificate] = map(load_der_x509_certificate, entry.chain)
        names.add(certificate.subject.rfc4514_string())
        assert load_der_private_key(entry.key(OTHER), None).public_key() == certificate.public_key()
        with pytest.raises(WrongPassword):
            entry.key(PASSWORD)
    assert names == {"CN=first", "CN=second"}


@pytest.mark.parametrize("version", [1, 2])
def test_keytool_reads_what_the_writer_of_these_tests_writes(certificates, tmp_path, version):
    """Which makes the other tests' stores Java's."""
    path = tmp_path / "store.jks"
    entries = [key_entry(certificates.broker, PASSWORD), trusted_entry(certificates.authority.own)]
    path.write_bytes(java_key_store(entries, PASSWORD, version))
    told = keytool("-list", "-keystore", path, "-storepass", PASSWORD)
    assert "own, " in told
    assert "PrivateKeyEntry" in told
    assert "trustedCertEntry" in told
    # The key is read where it is written anew.
    keytool(
        *("-importkeystore", "-srckeystore", path, "-srcstorepass", PASSWORD, "-srcalias", "own"),
        *("-destkeystore", tmp_path / "new.p12", "-deststoretype", "PKCS12", "-deststorepass", PASSWORD),
    )
