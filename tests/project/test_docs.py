"""What the documents say is what is so: the examples run, the tables hold."""

import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import platformdirs
import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from odradek.broker.api import SERVED
from odradek.common.config.broker_config import load
from odradek.common.config.table import BROKER_CONFIGS
from odradek.testing import Broker
from tests.broker_process import REPOSITORY
from tests.campaigns.table import CAMPAIGNS
from tests.cases import each_case
from tests.project.documents import DOCS, code_blocks, table
from tests.spark.session import require_java

PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
DOCUMENTS = [*sorted(REPOSITORY.glob("*.md")), *sorted(DOCS.glob("*.md"))]


@pytest.mark.timeout(240)
@pytest.mark.spark
@pytest.mark.further
@pytest.mark.xdist_group("spark")
def test_the_spark_example_prints_the_records_there_are(broker_process):
    require_java()
    broker = broker_process()
    producer = Producer({"bootstrap.servers": broker.address})
    for name in ("Ada", "Grace", "Edsger"):
        producer.produce("greetings", f"hello, {name}".encode())
    producer.flush()
    command = [sys.executable, str(DOCS / "examples" / "spark_read.py"), broker.address, "--once"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert process.returncode == 0, process.stderr
    assert f"The jars for the packages stored in: {platformdirs.user_cache_path('odradek')}/ivy/jars" in process.stderr
    assert "|greetings|0        |1     |NULL|hello, Grace |" in process.stdout


def test_the_api_table_is_what_the_broker_serves():
    rows = table(DOCS / "compatibility.md", "for", "APIs: name (key) versions")
    apis = [api for row in rows for api in row["APIs: name (key) versions"].split(", ")]
    told = [re.fullmatch(r"(\w+) \((\d+)\) (\d+-\d+)", api).groups() for api in apis]
    served = {
        ("".join(word.capitalize() for word in key.name.split("_")), int(key), f"{api.min_version}-{api.max_version}")
        for key, api in SERVED.items()
    }
    assert {(name, int(key), versions) for name, key, versions in told} == served
    assert len(told) == len(served)


def test_no_api_that_is_served_is_told_to_be_left_out():
    rows = table(DOCS / "differences-all.md", "answer", "case", "Kafka", "odradek", "why")
    told = [row for row in rows if row["why"] == "an API that is not served"]
    keys = {int(key) for row in told for key in re.findall(r"\b\d+\b", row["Kafka"])}
    names = [row["answer"].strip("`").partition(" ")[0] for row in told]
    assert keys.isdisjoint(map(int, SERVED))
    assert [api.name for api in SERVED if any(fnmatchcase(api.name, name) for name in names if name != "API_VERSIONS")] == []


def test_the_number_of_configs_is_told():
    with Broker() as broker:
        client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        [described] = client.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
        count = len(described.result(10))
    told = f", {count} in all where Kafka has 350, and"
    page = (DOCS / "differences-all.md").read_text(encoding="utf-8")
    assert told in page, f"DescribeConfigs names {count} broker configs: correct their number in docs/differences-all.md"


def test_every_default_that_differs_from_kafkas_is_in_the_differences():
    rows = table(DOCS / "differences-all.md", "config", "Kafka", "odradek", "why")
    told = {row["config"].strip("`"): row["Kafka"] for row in rows}
    assert told == {config.name: config.kafka_default for config in BROKER_CONFIGS.values() if config.difference}
    assert all(row["why"] for row in rows)


def test_the_listeners_of_the_operations_page_are_a_valid_configuration():
    [_, _, _, properties, _] = code_blocks(DOCS / "operations.md", "properties")
    config = load(properties)
    assert config.warnings == ()
    assert len(config["listeners"]) == len(config["advertised.listeners"]) == 2


def test_the_controllers_of_the_operations_page_listen_for_brokers():
    alone, with_broker = map(load, code_blocks(DOCS / "operations.md", "properties")[:2])
    assert (alone.warnings, alone["process.roles"], with_broker.warnings) == ((), ("controller",), ())
    assert [endpoint.port for config in (alone, with_broker) for endpoint in config.controller_endpoints] == [9093, 9093]
    assert (alone["listeners"], len(with_broker["listeners"])) == ((), 1)


def test_the_broker_in_a_kafka_cluster_of_the_operations_page_is_one():
    [_, _, properties, _, _] = code_blocks(DOCS / "operations.md", "properties")
    config = load(properties)
    assert (config.warnings, config["process.roles"], len(config["controller.quorum.voters"])) == ((), ("broker",), 3)


def test_the_configuration_for_kafka_of_the_operations_page_is_valid_for_odradek():
    [_, _, _, _, properties] = code_blocks(DOCS / "operations.md", "properties")
    assert load(properties)["listeners"] == ("PLAINTEXT://127.0.0.1:9092",)


def test_the_composed_broker_of_the_ci_page_is_reached_by_its_name():
    service = yaml.safe_load(code_blocks(DOCS / "ci.md", "yaml")[-1])["services"]["kafka"]
    config = load("\n".join(word for word in service["command"] if word != "--set"))
    assert (config.warnings, config["advertised.listeners"]) == ((), ("PLAINTEXT://kafka:9092",))


def test_the_configurations_of_other_programs_are_readable():
    [composed] = code_blocks(DOCS / "troubleshooting.md", "yaml")
    services = yaml.safe_load(composed)["services"]
    ports = [port for service in services.values() for port in service["ports"]]
    assert len({port.split(":")[1] for port in ports}) == len(services)
    assert [name for name, service in services.items() if "odradek:29092" not in str(service["environment"])] == []


def test_every_campaign_named_is_there():
    named = {name for document in DOCUMENTS for name in re.findall(r"make campaign NAME=([\w-]+)", document.read_text())}
    rows = table(DOCS / "how-it-is-tested.md", "promise", "campaign", "last whole run", "date")
    faults = table(DOCS / "how-it-is-tested.md", "campaign", "planted faults found")
    named |= {name for row in [*rows, *faults] for name in re.findall(r"`([\w-]+)`", row["campaign"])}
    assert named - CAMPAIGNS.keys() == set()


def test_every_dependency_has_its_reason():
    project = PYPROJECT["project"]
    requirements = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    reasons = (DOCS / "dependencies.md").read_text()
    missing = [name for name in (re.split(r"[^a-z0-9-]", r)[0] for r in requirements) if name not in reasons]
    assert missing == []


@each_case("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_within_the_repository_leads_somewhere(document: Path):
    targets = [link.partition("#")[0] for link in re.findall(r"\]\((?!https?:)([^)]+)\)", document.read_text())]
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_make_understands_the_makefile():
    done = subprocess.run(["make", "-n", "clean"], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


@each_case("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_named_is_there(document: Path):
    makefile = (REPOSITORY / "Makefile").read_text()
    named = set(re.findall(r"`make (\w+)`|\$ make (\w+)", document.read_text()))
    assert [name for pair in named for name in pair if name and not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
