"""The certificate of a port that is no listener: read again when its file is another one, and kept when it cannot be."""

import json
import shutil
from pathlib import Path

import pytest

from odradek.cli.certificate_file import CertificateFile
from odradek.common.config.definitions import InvalidConfig


@pytest.fixture
def put(certificates, tmp_path):
    """Puts what another file has into the port's, at one moment; returns its path."""

    def put(name):
        written = tmp_path / "new.pem"
        shutil.copyfile(certificates.path(name), written)
        return written.replace(tmp_path / "port.pem")

    return put


def events(capsys):
    return [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]


def test_a_file_that_stays_is_read_once(put, capsys):
    file = CertificateFile(put("broker.pem"), "--flag")
    assert file.context() is file.context()
    assert events(capsys) == []


def test_another_file_is_read_for_the_next_connection(put, capsys):
    file = CertificateFile(put("broker.pem"), "--flag")
    before = file.context()
    put("stray.pem")
    after = file.context()
    assert after is not before
    assert file.context() is after
    assert events(capsys) == ["certificate reloaded"]


@pytest.mark.parametrize("spoil", [lambda path: path.write_text("no certificate"), Path.unlink], ids=["no PEM", "no file"])
def test_a_file_that_cannot_be_used_leaves_what_there_is_until_it_can_be(put, capsys, spoil):
    path = put("broker.pem")
    file = CertificateFile(path, "--flag")
    before = file.context()
    spoil(path)
    assert file.context() is before
    assert file.context() is before
    # Not at each connection.
    assert events(capsys) == ["cannot reload the certificate: the old one stays in use"]
    put("broker.pem")
    assert file.context() is not before


def test_at_the_start_a_file_that_cannot_be_used_is_refused_with_the_flag(tmp_path):
    with pytest.raises(InvalidConfig, match=r"none\.pem for configuration --flag"):
        CertificateFile(tmp_path / "none.pem", "--flag")
