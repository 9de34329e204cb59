"""``--command-config``: the commands by TLS; ``tests/clients/test_sasl.py`` has them by SASL."""

import pytest

from tests.tls import PASSWORD


@pytest.fixture
def broker(broker_process, certificates):
    return broker_process(settings={"listeners": "SSL://127.0.0.1:0", **certificates.settings(client_auth="required")})


@pytest.fixture
def asked(command, broker, tmp_path):
    """Make a topic with these lines in the file: (exit status, stdout, stderr)."""

    def run(*lines):
        file = tmp_path / "client.properties"
        file.write_text("\n".join(lines))
        return command("topics", "create", "by-tls", "--bootstrap-server", broker.address, "--command-config", file)

    return run


def pem(certificates, trusted="ca"):
    return [
        "security.protocol=SSL",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={certificates.path(trusted + '.pem')}",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={certificates.path('orders.pem')}",
        "# for others",
        "acks=all",
    ]


def test_a_command_speaks_tls_with_the_files_stores(asked, certificates):
    assert asked(*pem(certificates))[0] == 0


@pytest.mark.parametrize(("kind", "form"), [("PKCS12", "p12"), ("JKS", "jks")])
def test_a_command_speaks_tls_with_stores_of_java(asked, certificates, kind, form):
    stores = [("truststore", f"ca.{form}"), ("keystore", f"orders.{form}")]
    lines = [
        line
        for store, name in stores
        for line in (
            f"ssl.{store}.type={kind}",
            f"ssl.{store}.location={certificates.path(name)}",
            f"ssl.{store}.password={PASSWORD}",
        )
    ]
    assert asked("security.protocol=SSL", *lines)[0] == 0


def test_a_broker_that_is_not_trusted_is_told(asked, certificates):
    status, _, err = asked(*pem(certificates, trusted="strangers"))
    assert status == 2
    assert "certificate verify failed" in err.lower()


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["security.protocol=TLS"], "security.protocol"),
        (["security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.location=/nowhere.pem"], "ssl.truststore.location"),
        ([], "if it wants TLS or a password, set security.protocol in the file of --command-config"),
    ],
)
def test_what_a_command_cannot_do_with_its_file_is_told(asked, lines, told):
    status, out, err = asked(*lines)
    assert (status, out) == (2, "")
    assert told in err


def test_a_file_that_is_not_there_is_told(command, tmp_path):
    status, _, err = command("topics", "list", "--command-config", tmp_path / "none")
    assert status == 2
    assert "No such file" in err
