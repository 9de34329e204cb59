"""``serve --secure``: what it prints is what each client takes, and without it nobody comes in."""

import re
import shutil
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from ssl import create_default_context, get_server_certificate

import pytest
import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition

from odradek.cli.main import command
from tests.broker_process import command_environment
from tests.campaigns.kafka_tools.kafka_tool import run_tool
from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.project.documents import DOCS, code_blocks, table
from tests.secure import PARTS, SecureBroker

SAID = b"hello to those who are let in"


@pytest.fixture(scope="module")
def module_broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("secure")
    with SecureBroker(directory / "data", arguments=("--http-port", "0")) as broker:
        yield broker
        assert not [secret for secret in broker.secrets if secret in broker.stderr + broker.printed]


def test_what_is_printed_is_of_each_client_and_ten_lines_at_most(broker):
    assert [heading for heading in PARTS if len(broker.part(heading).splitlines()) > 10] == []


def test_the_page_has_two_parts_of_what_is_printed_and_every_file(broker):
    [shown] = [block for block in code_blocks(DOCS / "security.md", "text") if block.startswith("odradek ready on")]
    placed = broker.printed.replace(str(broker.data_dir), "/home/you/data").replace(broker.address, "127.0.0.1:9092")
    ready, *parts = shown.strip().split("\n\n")
    assert ready == "odradek ready on 127.0.0.1:9092"
    assert len(parts) == 3
    assert set(parts) <= set(placed.strip().split("\n\n"))
    files = " ".join(row["file"] for row in table(DOCS / "security.md", "file", "content"))
    made = {path.name for path in broker.data_dir.glob("secure-*")}
    assert made == set(re.findall(r"[\w.-]+", files))


def test_kafka_python_comes_in(broker, new_name):
    kafka, topic = broker.python("# kafka-python"), new_name()
    with KafkaProducer(**kafka) as producer:
        producer.send(topic, SAID).get(CLIENT_TIMEOUT_S)
    with KafkaConsumer(**kafka, auto_offset_reset="earliest") as consumer:
        consumer.assign([KafkaPythonPartition(topic, 0)])
        assert next(consumer).value == SAID


async def test_aiokafka_comes_in(broker, new_name):
    kafka, topic = broker.python("# aiokafka"), new_name()
    async with AIOKafkaProducer(**kafka) as producer:
        await producer.send_and_wait(topic, SAID)
    async with AIOKafkaConsumer(**kafka, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert (await consumer.getone()).value == SAID


def test_librdkafka_comes_in(broker, new_name):
    kafka, topic = broker.python("# librdkafka"), new_name()
    producer = Producer(kafka)
    producer.produce(topic, SAID)
    assert producer.flush(CLIENT_TIMEOUT_S) == 0
    consumer = Consumer({**kafka, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.assign([ConfluentPartition(topic, 0, 0)])
    assert consumer.poll(CLIENT_TIMEOUT_S).value() == SAID
    consumer.close()


@pytest.mark.timeout(120)
def test_the_java_client_comes_in(broker, new_name):
    arguments = ["--bootstrap-server", broker.properties["bootstrap.servers"], "--topic", new_name()]
    arguments += ["--command-config", broker.properties_path]

    def tool(name, *more, **given):
        return run_tool(f"org.apache.kafka.tools.{name}", *arguments, *more, **given)

    produced = tool("ConsoleProducer", given=SAID.decode())
    assert produced.returncode == 0, produced.stderr
    consumed = tool("consumer.ConsoleConsumer", "--from-beginning", "--max-messages", "1")
    assert consumed.stdout == f"{SAID.decode()}\n", consumed.stderr


def test_odradeks_own_commands_come_in_and_let_others_in(broker, tmp_path):
    at = ["--bootstrap-server", broker.address, "--command-config", broker.properties_path]
    (tmp_path / "password").write_text("carol-secret")
    added = CliRunner().invoke(command, ["users", "add", "carol", "--password-file", str(tmp_path / "password"), *at])
    assert added.exit_code == 0, added.output
    kafka = broker.python("# librdkafka") | {"sasl.username": "carol", "sasl.password": "carol-secret"}
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        assert AdminClient(kafka | {"sasl.mechanism": mechanism}).list_topics(timeout=CLIENT_TIMEOUT_S).brokers


@pytest.mark.parametrize(
    "wrong",
    [
        {"sasl.password": "a guess"},
        {"security.protocol": "SSL"},
        {"security.protocol": "SASL_PLAINTEXT"},
        {"ssl.ca.location": ""},
    ],
    ids=["password", "without SASL", "without TLS", "another authority"],
)
def test_without_what_is_printed_nobody_comes_in(broker, wrong):
    kafka = {key: value for key, value in (broker.python("# librdkafka") | wrong).items() if value}
    with pytest.raises(KafkaException):
        AdminClient({**kafka, "log_level": 0}).list_topics(timeout=0.5)


def test_who_is_in_is_not_told_the_password(broker):
    admin = AdminClient(broker.python("# librdkafka"))
    [described] = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
    configs = described.result(CLIENT_TIMEOUT_S)
    assert configs["listeners"].value.startswith("SASL_SSL://")
    assert not [each for each in configs.values() if broker.secrets[0] in str(each.value)]


def test_a_scraper_comes_in_with_what_is_printed_and_without_it_does_not(broker):
    printed = yaml.safe_load(broker.part("# Prometheus"))
    assert printed["scheme"] == "https"
    token = Path(printed["authorization"]["credentials_file"]).read_text()
    context = create_default_context(cafile=printed["tls_config"]["ca_file"])

    def scrape(token):
        request = urllib.request.Request(f"{broker.http_url}/metrics", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return answer.read()

    assert b"kafka_server_replicamanager_partitioncount" in scrape(token)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        scrape("a guess")


def test_only_the_authoritys_certificate_may_be_read_by_others(broker):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in broker.data_dir.glob("secure-*")}
    assert modes == {
        "secure-ca.pem": 0o644,
        **dict.fromkeys(
            (
                "secure-ca.key",
                "secure-broker.pem",
                "secure-client.properties",
                "secure-http-token",
                "secure-metrics-token",
                "secure-password",
            ),
            0o600,
        ),
    }


def test_after_a_restart_clients_come_in_with_what_they_had(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(f"listeners=DOOR://:0\nlistener.security.protocol.map=DOOR:SASL_SSL\nlog.dirs={tmp_path}/data\n")
    with SecureBroker(tmp_path / "data", arguments=("--config", str(file))) as broker:
        kafka, printed, secrets = broker.python("# librdkafka"), broker.printed, broker.secrets
        broker.restart()
        assert broker.printed == printed
        assert broker.secrets == secrets
        assert AdminClient(kafka).list_topics(timeout=CLIENT_TIMEOUT_S).brokers


def test_the_certificate_is_replaced_while_the_broker_runs(tmp_path):
    [lines] = [block for block in code_blocks(DOCS / "security.md", "console") if "odradek certs new" in block]
    with SecureBroker(tmp_path / "data") as broker:

        def served():
            address = broker.address.split(":")
            return get_server_certificate((address[0], int(address[1])), ca_certs=str(broker.data_dir / "secure-ca.pem"))

        before = served()
        (tmp_path / "new").mkdir()
        for name in ("ca.pem", "ca.key"):
            shutil.copy(broker.data_dir / f"secure-{name}", tmp_path / "new" / name)
        typed = re.sub(r"^\$ ", "", lines, flags=re.MULTILINE).replace("odradek", f"{sys.executable} -m odradek")
        subprocess.run(typed, cwd=tmp_path, env=command_environment(), shell=True, check=True, capture_output=True)
        location = ConfigEntry(
            "listener.name.sasl_ssl.ssl.keystore.location",
            str(broker.data_dir / "secure-broker.pem"),
            incremental_operation=AlterConfigOpType.SET,
        )
        resource = ConfigResource("broker", "1", incremental_configs=[location])
        admin = AdminClient(broker.python("# librdkafka"))
        admin.incremental_alter_configs([resource])[resource].result(CLIENT_TIMEOUT_S)
        assert served() != before
        assert "stores reloaded" in broker.stderr
        broker.restart()
