"""What ``serve --secure`` keeps: the same over restarts, and anew when its time has come."""

import ssl
import stat

import pytest

from odradek.cli.secure import CannotSecure, SecureFiles, secret
from odradek.testing.certificates import CertificateAuthority

HOSTS = ["localhost", "127.0.0.1", "::1"]


@pytest.fixture
def files(tmp_path):
    files = SecureFiles(tmp_path)
    files.make(HOSTS)
    return files


def contents(files):
    return {path.name: path.read_bytes() for path in files.directory.iterdir()}


def names(path):
    return {name for _, name in ssl._ssl._test_decode_cert(str(path))["subjectAltName"]}


def put_broker(files, hosts, days, authority=None):
    authority = authority or CertificateAuthority.load(files.authority.read_text(), files.authority_key.read_text())
    made = authority.issue("broker", hosts, days)
    files.broker.write_text(made.pem + made.key_pem)


def test_what_is_there_stays(files):
    before = contents(files)
    assert before.keys() == {"secure-ca.pem", "secure-ca.key", "secure-broker.pem", "secure-password"}
    files.make(HOSTS)
    assert contents(files) == before


def test_the_brokers_certificate_is_made_anew_for_another_host_and_all_else_stays(files):
    before = contents(files)
    files.make([*HOSTS, "kafka.example"])
    after = contents(files)
    assert {name for name in before if before[name] != after[name]} == {"secure-broker.pem"}
    assert "kafka.example" in names(files.broker)
    files.make(HOSTS)
    assert contents(files) == after


@pytest.mark.parametrize("days", [0, 29])
def test_a_certificate_that_expires_is_made_anew_by_the_same_authority(files, days):
    put_broker(files, HOSTS, days)
    before = contents(files)
    files.make(HOSTS)
    after = contents(files)
    assert {name for name in before if before[name] != after[name]} == {"secure-broker.pem"}
    context = ssl.create_default_context(cafile=str(files.authority))
    assert CertificateAuthority.load(files.authority.read_text(), files.authority_key.read_text()).has_issued(
        files.broker.read_bytes(), HOSTS, 300
    )
    context.load_cert_chain(files.broker)


def test_a_certificate_of_another_authority_or_none_is_made_anew(files):
    for spoil in (lambda: put_broker(files, HOSTS, 300, CertificateAuthority.make()), lambda: files.broker.write_bytes(b"\xff")):
        spoil()
        spoilt = files.broker.read_bytes()
        files.make(HOSTS)
        assert files.broker.read_bytes() != spoilt


def test_an_authority_that_expires_is_made_anew_with_the_certificate_and_that_is_logged(files, capsys):
    old = CertificateAuthority.make(days=10)
    files.authority.write_text(old.own.pem)
    files.authority_key.write_text(old.own.key_pem)
    before = contents(files)
    files.make(HOSTS)
    after = contents(files)
    assert {name for name in before if before[name] != after[name]} == {"secure-ca.pem", "secure-ca.key", "secure-broker.pem"}
    assert "give its certificate to all clients" in capsys.readouterr().err


def test_half_an_authority_is_made_anew(files):
    files.authority.unlink()
    files.make(HOSTS)
    assert stat.S_IMODE(files.authority_key.stat().st_mode) == 0o600
    CertificateAuthority.load(files.authority.read_text(), files.authority_key.read_text())


def test_an_authority_that_cannot_be_read_is_left_alone_and_named(files):
    files.authority_key.write_text("nonsense")
    before = contents(files)
    with pytest.raises(CannotSecure, match=r"secure-ca\.key"):
        files.make(HOSTS)
    assert contents(files) == before


def test_secrets_are_random_and_long(tmp_path):
    found = {secret(tmp_path / str(number)) for number in range(100)}
    assert len(found) == 100
    assert min(map(len, found)) >= 32


def test_a_secret_of_ones_own_stays_and_an_empty_one_does_not(tmp_path):
    path = tmp_path / "secret"
    path.write_text("chosen by hand\n")
    assert secret(path) == "chosen by hand"
    path.write_text("")
    assert len(secret(path)) >= 32


@pytest.mark.parametrize("chosen", ['quo"te', "back\\slash", "z\u00e4h", "two\nlines"])
def test_a_secret_that_would_have_to_be_escaped_is_refused_and_not_told(tmp_path, chosen):
    path = tmp_path / "secret"
    path.write_text(chosen)
    with pytest.raises(CannotSecure) as caught:
        secret(path)
    assert str(path) in str(caught.value)
    assert chosen not in str(caught.value)
