"""docs/security.md as its readers follow it: the certificates, the broker's file, and each client's example."""

import shlex
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import kafka_jars
from tests.broker_process import BrokerProcess, command_environment
from tests.project.documents import DOCS, block_with, code_blocks

PAGE = DOCS / "security.md"
PYTHON = code_blocks(PAGE, "python")
BROKER, *JAVA = code_blocks(PAGE, "properties")
CLIENTS = ["kafka-python", "aiokafka", "confluent-kafka"]
SAID = "hello by TLS"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Where the example of ``odradek certs`` has been typed, and the broker's file written."""
    directory = tmp_path_factory.mktemp("documented")
    blocks = [block.splitlines() for block in code_blocks(PAGE, "console")]
    [[line, *printed]] = [lines for lines in blocks if lines[0].startswith("$ odradek certs certs --client")]
    command = [sys.executable, "-m", *line.removeprefix("$ ").split()]
    told = subprocess.run(command, cwd=directory, env=command_environment(), capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == [each.replace("/home/you", str(directory)) for each in printed]
    assert all(each.replace(f"{directory}/", "") in BROKER for each in told.splitlines())
    (directory / "server.properties").write_text(BROKER.replace("certs/", f"{directory}/certs/"))
    return directory


@pytest.fixture(scope="module")
def module_broker(directory):
    arguments = ("--config", str(directory / "server.properties"))
    with BrokerProcess(directory / "data", arguments=arguments) as broker:
        yield broker


@pytest.mark.parametrize("client", CLIENTS)
def test_the_example_of_a_python_client_reads_what_it_has_written(directory, broker, new_name, client):
    [example] = [example for example in PYTHON if f"from {client.replace('-', '_').removesuffix('_python')} " in example]
    example = example.replace("localhost:9093", f"localhost:{broker.port}").replace("greetings", new_name())
    done = subprocess.run([sys.executable, "-c", example], cwd=directory, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout) == (0, f"{SAID}\n"), done.stderr


def test_every_python_example_is_some_clients():
    assert len(PYTHON) == len(CLIENTS)


def test_the_example_of_a_renewed_certificate_is_served_to_new_clients(directory, broker):
    """As the page says it, by the command. openssl shows the certificate."""
    renewal = block_with(PAGE, "console", "odradek configs alter")
    [openssl] = [block for block in code_blocks(PAGE, "console") if "openssl" in block]

    def shown():
        line = openssl.removeprefix("$ ").replace(":9093", f":{broker.port}")
        return subprocess.run(line, shell=True, capture_output=True, text=True, check=True).stdout

    before = shown()
    assert "serial=" in before
    assert "notAfter=" in before
    renew = [sys.executable, "-m", "odradek", "certs", "certs", "--renew"]
    subprocess.run(renew, cwd=directory, env=command_environment(), capture_output=True, check=True)
    (directory / "client.properties").write_text(JAVA[0])
    typed = renewal.replace("/home/you", str(directory)).replace("localhost:9093", f"localhost:{broker.port}")
    alter = [sys.executable, "-m", *shlex.split(typed.removeprefix("$ ").replace("\\\n", ""))]
    done = subprocess.run(
        alter, cwd=directory, env=command_environment(), capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    assert shown() != before
    assert "stores reloaded" in broker.stderr


def test_the_certificate_that_openssl_makes_is_served_and_trusted(broker_process, tmp_path):
    [recipe] = code_blocks(PAGE, "sh")
    subprocess.run(["/bin/sh", "-e", "-c", recipe], cwd=tmp_path, capture_output=True, check=True)
    assert (tmp_path / "broker.pem").stat().st_mode & 0o777 == 0o600
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": tmp_path / "broker.pem"}
    served = broker_process(settings={"listeners": "SSL://127.0.0.1:0", **keys})
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    for host in ("localhost", "127.0.0.1"):
        with (
            socket.create_connection((served.host, served.port)) as raw,
            context.wrap_socket(raw, server_hostname=host) as client,
        ):
            assert client.version() is not None


@pytest.mark.timeout(120)
@pytest.mark.parametrize("properties", JAVA, ids=["PEM", "PKCS12"])
def test_the_example_of_the_java_client_reads_what_it_has_written(directory, broker, new_name, properties):
    topic = new_name()
    (directory / "client.properties").write_text(properties)
    classpath = f"{kafka_jars.libraries()}/*"

    def tool(name, *arguments, **options):
        command = [kafka_jars.java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", classpath, f"org.apache.kafka.tools.{name}"]
        common = ["--bootstrap-server", f"localhost:{broker.port}", "--topic", topic, "--command-config", "client.properties"]
        return subprocess.run(
            [*command, *common, *arguments], cwd=directory, capture_output=True, text=True, check=False, **options
        )

    produced = tool("ConsoleProducer", input=f"{SAID}\n")
    assert produced.returncode == 0, produced.stderr
    consumed = tool("consumer.ConsoleConsumer", "--from-beginning", "--max-messages", "1")
    assert consumed.stdout == f"{SAID}\n", consumed.stderr


def test_the_files_of_the_page_are_those_that_are_there(directory):
    there = {path.name for path in Path(directory / "certs").iterdir()}
    assert there == {
        "ca.pem",
        "ca.key",
        "truststore.p12",
        *(f"{name}.{form}" for name in ("broker", "orders") for form in ("pem", "p12")),
    }
