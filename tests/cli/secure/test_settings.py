"""What ``serve --secure`` adds to a broker's settings, and what it refuses among them."""

import subprocess
import sys

import pytest

from odradek.cli.secure import secure
from odradek.common.config.broker_config import load
from odradek.common.config.definitions import HIDDEN, InvalidConfig
from odradek.storage.directories.data_directory import DataDirectory
from odradek.storage.errors import DataDirectoryLocked
from odradek.storage.filesystem import RealFileSystem
from odradek.testing.certificates import CertificateAuthority
from tests.broker_process import command_environment

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


@pytest.fixture
def made(tmp_path):
    """The settings that come of others, and the files."""

    def secured(**settings):
        found = {"listeners": "SASL_SSL://127.0.0.1:0", "log.dirs": str(tmp_path), **settings}
        return found, secure(found)

    return secured


def is_for(files, *hosts):
    authority = CertificateAuthority.load(files.authority.read_text(), files.authority_key.read_text())
    return authority.has_issued(files.broker.read_bytes(), hosts, 300)


def test_what_is_added_is_a_configuration_without_a_warning(made):
    settings, _ = made()
    assert load(None, settings).warnings == ()
    assert "authorizer.class.name" not in settings


def test_each_listener_is_shut_by_its_name(made):
    settings, files = made(
        **{
            "listeners": "HOST://0.0.0.0:9092,INTERNAL://:29092",
            "advertised.listeners": "HOST://kafka.example:9092,INTERNAL://odradek:29092",
            "listener.security.protocol.map": "HOST:SASL_SSL,INTERNAL:SASL_SSL",
        }
    )
    config = load(None, settings)
    assert config.warnings == ()
    for name in ("HOST", "INTERNAL"):
        assert config.listener_config(name)["ssl.keystore.location"] == str(files.broker)
        assert config.sasl_config(name).jaas_line("PLAIN") == config.sasl_config("HOST").jaas_line("PLAIN")
    assert is_for(files, "localhost", "127.0.0.1", "::1", "kafka.example", "odradek")


def test_the_certificate_is_for_where_the_broker_listens(made):
    assert is_for(made(listeners="SASL_SSL://192.0.2.7:9092")[1], "192.0.2.7", "localhost")


def test_the_second_start_adds_the_same(made):
    (first, files), (second, same) = made(), made()
    assert (first, files.directory) == (second, same.directory)


def test_files_are_beside_the_metadata_log(made, tmp_path):
    _, files = made(**{"log.dirs": f"{tmp_path}/a,{tmp_path}/b"})
    assert files.directory == tmp_path / "a"
    _, files = made(**{"log.dirs": f"{tmp_path}/a", "metadata.log.dir": f"{tmp_path}/c"})
    assert files.directory == tmp_path / "c"
    assert files.password.exists()


@pytest.mark.parametrize(
    ("named", "super_users"),
    [
        ({}, "User:odradek"),
        ({"super.users": "User:ada; User:odradek"}, "User:ada; User:odradek"),
        ({"super.users": "User:ada"}, "User:ada;User:odradek"),
    ],
)
def test_with_an_authorizer_the_user_is_a_super_user(made, named, super_users):
    assert made(**AUTHORIZER, **named)[0]["super.users"] == super_users


@pytest.mark.parametrize(
    ("settings", "key", "value", "allowed"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:9092"}, "listeners", "PLAINTEXT://127.0.0.1:9092", "SASL_SSL only"),
        ({"listeners": "SASL_SSL://:1,SSL://:2"}, "listeners", "SSL://:2", "SASL_SSL only"),
        ({"listeners": "SASL_PLAINTEXT://h:1"}, "listeners", "SASL_PLAINTEXT://h:1", "SASL_SSL only"),
        ({"listeners": "nonsense"}, "listeners", "nonsense", "NAME://HOST:PORT"),
        (
            {
                "listeners": "SASL_SSL://:1,CONTROLLER://:2",
                "process.roles": "broker,controller",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
            },
            "listeners",
            "CONTROLLER://:2",
            "SASL_SSL only",
        ),
        ({"process.roles": "broker"}, "process.roles", "broker", "left out"),
        ({"process.roles": "controller"}, "process.roles", "controller", "left out"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "sasl.enabled.mechanisms", "OAUTHBEARER", "left out"),
        ({"ssl.keystore.location": "mine.pem"}, "ssl.keystore.location", "mine.pem", "left out"),
        ({"listener.name.x.ssl.keystore.key": "s3cret"}, "listener.name.x.ssl.keystore.key", HIDDEN, "left out"),
        (
            {"listener.name.sasl_ssl.plain.sasl.jaas.config": "s3cret"},
            "listener.name.sasl_ssl.plain.sasl.jaas.config",
            HIDDEN,
            "left out",
        ),
    ],
)
def test_what_does_not_go_with_it_is_named_and_nothing_is_made(made, tmp_path, settings, key, value, allowed):
    with pytest.raises(InvalidConfig) as caught:
        made(**settings)
    assert (caught.value.key, caught.value.value) == (key, value)
    assert allowed in caught.value.allowed
    assert list(tmp_path.iterdir()) == []


def test_the_data_of_a_broker_that_runs_is_left_alone(made, tmp_path):
    held = DataDirectory(RealFileSystem(), str(tmp_path), print)
    held.take(1)
    try:
        with pytest.raises(DataDirectoryLocked):
            made()
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    finally:
        held.release()


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (["--set", "listeners=PLAINTEXT://127.0.0.1:0"], "PLAINTEXT://127.0.0.1:0 for configuration listeners: must be"),
        (["--http-port", "0", "--http-certificate", "none.pem"], "none.pem for configuration --http-certificate"),
    ],
)
def test_a_start_that_is_refused_is_one_line(tmp_path, arguments, mentions):
    line = [sys.executable, "-m", "odradek", "serve", "--secure", "--data-dir", str(tmp_path / "data"), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, env=command_environment(), check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert mentions in done.stderr


def test_without_cryptography_it_says_what_to_install(made, monkeypatch):
    monkeypatch.delitem(sys.modules, "odradek.testing.certificates", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(OSError, match=r"pip install 'odradek\[tls\]'"):
        made()
