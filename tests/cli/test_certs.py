"""``odradek certs``: what is made, what stays, and who may read it."""

import ssl
import stat
import sys

import pytest

from tests.tls import PASSWORD, Certificates

HOST = ["--host", "broker.example", "--host", "10.1.2.3"]


@pytest.fixture
def made(command, tmp_path):
    directory = tmp_path / "certs"
    status, out, err = command("certs", directory, *HOST, "--client", "orders", "--client", "CN=audit,OU=Shop,O=Example")
    assert (status, err) == (0, "")
    assert f"ssl.keystore.location={directory / 'broker.pem'}" in out.splitlines()
    return directory


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def subject_and_names(path):
    """Of the certificate in a file."""
    found = ssl._ssl._test_decode_cert(str(path))
    return [pair for name in found["subject"] for pair in name], list(found.get("subjectAltName", ()))


def test_the_certificates_are_of_those_who_were_named(made):
    assert subject_and_names(made / "broker.pem") == (
        [("commonName", "broker")],
        [("DNS", "broker.example"), ("IP Address", "10.1.2.3")],
    )
    subject = [("organizationName", "Example"), ("organizationalUnitName", "Shop"), ("commonName", "audit")]
    assert subject_and_names(made / "audit.pem") == (subject, [])
    assert subject_and_names(made / "orders.pem") == ([("commonName", "orders")], [])


def test_nobody_else_may_read_a_key(made):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()}
    public = {"ca.pem", "truststore.p12"}
    assert {name for name, mode in modes.items() if mode & 0o077} == public


def test_what_is_there_stays_and_a_client_is_added(command, made):
    before = contents(made)
    assert command("certs", made, "--client", "orders", "--client", "more")[0] == 0
    after = contents(made)
    assert before.items() <= after.items()
    assert after.keys() - before.keys() == {"more.pem", "more.p12"}


def test_certificates_are_renewed_and_the_authority_stays(command, made):
    before = contents(made)
    assert command("certs", made, "--renew", "--client", "orders")[0] == 0
    after = contents(made)
    assert {name for name in before if before[name] != after[name]} == {
        *("broker.pem", "broker.p12", "orders.pem", "orders.p12"),
    }
    assert ("DNS", "localhost") in subject_and_names(made / "broker.pem")[1]


@pytest.mark.parametrize("name", ["../x", "ca", "broker", "CN=", ".hidden", "nonsense=x"])
def test_a_client_whose_name_is_no_files_is_refused(command, made, name):
    before = contents(made)
    status, out, err = command("certs", made, "--client", name)
    assert (status, out) == (2, "")
    assert err.startswith("odradek: ")
    assert contents(made) == before


def test_an_authority_of_another_kind_is_not_overwritten(command, made):
    (made / "ca.key").write_text("nonsense")
    before = contents(made)
    assert command("certs", made, "--client", "late")[0] == 2
    assert contents(made) == before


def test_without_cryptography_it_says_what_to_install(command, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "odradek.testing.certificates", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    status, _, err = command("certs", tmp_path / "certs")
    assert status == 2
    assert "pip install 'odradek[tls]'" in err
    assert not (tmp_path / "certs").exists()


def test_an_encrypted_key_and_the_stores_open_with_their_password_alone(tmp_path):
    made = Certificates(tmp_path)
    key = tmp_path / "encrypted.pem"
    key.write_text(made.broker.pem + made.broker.encrypted_key_pem(PASSWORD))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(key, password=PASSWORD)
    with pytest.raises(ssl.SSLError):
        context.load_cert_chain(key, password="another")
