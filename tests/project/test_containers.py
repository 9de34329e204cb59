"""The image and the compose file, as far as they can be held to account without a container engine."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from odradek.broker.config.broker_config import load
from odradek.properties import parse_properties
from tests.broker_process import REPOSITORY, command_environment

DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())


def settings(arguments):
    """What ``--set`` options set; nothing else may stand among them."""
    assert arguments[::2] == ["--set"] * (len(arguments) // 2)
    return dict(argument.split("=", 1) for argument in arguments[1::2])


def stage(name):
    """The instructions of one stage of the Dockerfile."""
    stages = re.split(r"^(?=FROM )", DOCKERFILE, flags=re.MULTILINE)
    return next(text for text in stages if f" AS {name}\n" in text)


def listed(instruction, text):
    """The JSON form of the last instruction of that name."""
    return yaml.safe_load(re.findall(rf"{instruction} (\[.*\])", text)[-1])


def test_the_settings_of_the_image_are_a_valid_configuration():
    config = load(None, settings(listed("CMD", stage("broker"))))
    assert config.warnings == ()


def test_the_settings_of_the_compose_file_are_a_valid_configuration_of_two_listeners():
    config = load(None, settings(COMPOSE["services"]["odradek"]["command"]))
    assert config.warnings == ()
    assert len(config["listeners"]) == 2


def test_the_host_is_told_localhost_and_other_containers_the_service_name():
    config = load(None, settings(COMPOSE["services"]["odradek"]["command"]))
    assert set(config["advertised.listeners"]) == {"HOST://localhost:9092", "INTERNAL://odradek:29092"}
    assert COMPOSE["services"]["odradek"]["ports"] == ["127.0.0.1:9092:9092"]


def test_what_is_published_is_on_this_machine_alone_and_a_listener_is_bound_to_it():
    published = {name: service["ports"] for name, service in COMPOSE["services"].items() if "ports" in service}
    assert published.keys() == {"odradek", "broker-1", "broker-2", "broker-3"}
    for name, [port] in published.items():
        address, _, inside = port.split(":")
        bound = load(None, settings(COMPOSE["services"][name]["command"]))["listeners"]
        assert address == "127.0.0.1"
        assert f"HOST://0.0.0.0:{inside}" in bound


def test_spark_waits_for_a_healthy_broker_and_reads_by_the_internal_listener():
    spark = COMPOSE["services"]["spark"]
    assert spark["profiles"] == ["spark"]
    assert spark["depends_on"] == {"odradek": {"condition": "service_healthy"}}
    assert spark["command"] == ["odradek:29092"]


def test_data_is_on_a_volume_where_the_broker_keeps_it():
    assert "data:/data" in COMPOSE["services"]["odradek"]["volumes"]
    assert listed("ENTRYPOINT", stage("broker")) == ["odradek", "serve", "--data-dir", "/data"]
    assert "VOLUME /data" in stage("broker")


NODES = {name: service for name, service in COMPOSE["services"].items() if service.get("profiles") == ["cluster"]}


def test_the_cluster_of_the_compose_file_has_a_controller_and_three_brokers_of_one_quorum():
    configs = {name: load(None, settings(service["command"])) for name, service in NODES.items()}
    assert {name: (config["process.roles"], config["node.id"]) for name, config in configs.items()} == {
        "controller": (("controller",), 100),
        **{f"broker-{number}": (("broker",), number) for number in (1, 2, 3)},
    }
    assert [config.warnings for config in configs.values()] == [()] * 4
    assert {config["controller.quorum.voters"] for config in configs.values()} == {("100@controller:9093",)}


def test_the_brokers_of_the_compose_file_are_told_apart_outside_and_by_their_names_inside():
    for number in (1, 2, 3):
        broker = NODES[f"broker-{number}"]
        [port] = broker["ports"]
        told = settings(broker["command"])["advertised.listeners"]
        assert port == f"127.0.0.1:{19091 + number}:9092"
        assert told == f"HOST://localhost:{19091 + number},INTERNAL://broker-{number}:29092"
        assert broker["depends_on"] == {"controller": {"condition": "service_healthy"}}
    assert NODES["controller"]["healthcheck"]["test"][-1] == "127.0.0.1:9093"


def test_each_node_of_the_compose_file_has_its_own_volume_and_is_named_in_the_documents():
    volumes = [volume for service in NODES.values() for volume in service["volumes"]]
    assert len(set(volumes)) == 4
    assert all(volume.endswith(":/data") and volume.split(":")[0] in COMPOSE["volumes"] for volume in volumes)
    command = f"docker compose --profile cluster up -d {' '.join(NODES)}"
    for document in (REPOSITORY / "docs" / "operations.md", REPOSITORY / "docker-compose.yml"):
        assert command in document.read_text()


@pytest.mark.parametrize("name", ["broker", "spark"])
def test_what_runs_is_not_root(name):
    assert re.search(r"^USER (?!root)", stage(name), re.MULTILINE)


def test_the_image_that_is_built_without_a_target_is_the_broker():
    assert re.findall(r"^FROM .* AS (\w+)$", DOCKERFILE, re.MULTILINE)[-1] == "broker"


def test_the_spark_image_has_the_version_that_the_pipeline_extra_asks_for():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    [requirement] = [name for name in project["optional-dependencies"]["pipeline"] if name.startswith("pyspark")]
    assert f'pip install --no-cache-dir "{requirement}"' in stage("spark")


def test_everything_the_dockerfile_copies_is_let_through():
    let_through = {line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [word for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE) for word in shlex.split(line)[:-1]]
    assert [name for name in copied if name not in let_through or not (REPOSITORY / name).exists()] == []


def _health_check():
    return listed("CMD", DOCKERFILE[DOCKERFILE.index("HEALTHCHECK") : DOCKERFILE.index('ENTRYPOINT ["odradek"')])


def test_the_health_check_is_a_round_trip_to_the_port_exposed():
    assert _health_check() == ["python", "-m", "odradek.cli.health", "127.0.0.1:9092"]
    assert "EXPOSE 9092" in stage("broker")


def documented_runs():
    """What follows ``docker run`` on the page, as words."""
    page = (REPOSITORY / "docs" / "operations.md").read_text().replace("\\\n", " ")
    return [shlex.split(line)[3:] for line in page.splitlines() if line.startswith("$ docker run ")]


def test_every_documented_port_is_on_this_machine_alone_or_behind_a_password():
    for words in documented_runs():
        ports = [words[at + 1] for at, word in enumerate(words) if word == "-p"]
        assert ports
        assert "--secure" in words or all(port.startswith("127.0.0.1:") for port in ports), words
    dockerfile = [shlex.split(line) for line in DOCKERFILE.splitlines() if "docker run" in line]
    assert [words[words.index("-p") + 1] for words in dockerfile] == ["127.0.0.1:9092:9092"]


def test_the_image_has_what_makes_certificates():
    assert 'pip install --no-cache-dir ".[tls]"' in stage("build")


def test_the_documented_secure_run_is_healthy_and_opens_to_its_file_alone(tmp_path, monkeypatch):
    [words] = [words for words in documented_runs() if "--secure" in words]
    arguments = words[words.index("odradek") + 1 :]
    assert words[words.index("-p") + 1] == "9092:9092"
    monkeypatch.setenv("TMPDIR", os.fspath(tmp_path))
    entrypoint = [sys.executable, "-m", *listed("ENTRYPOINT", stage("broker"))]
    line = [os.fspath(tmp_path / "data") if word == "/data" else word for word in entrypoint]
    process = subprocess.Popen([*line, *arguments, "--port", "0"], stdout=subprocess.PIPE, text=True, env=command_environment())
    try:
        # As clients outside are told.
        told = re.fullmatch(r"odradek ready on 0\.0\.0\.0:(\d+)\n", process.stdout.readline())
        health = [sys.executable if word == "python" else word.replace("9092", told[1]) for word in _health_check()]
        assert subprocess.run(health, env=command_environment(), check=False, timeout=30).returncode == 0
        while not (path := process.stdout.readline().strip()).endswith("secure-client.properties"):
            assert process.poll() is None
        configs = parse_properties(Path(path).read_text())
        assert configs["bootstrap.servers"] == f"localhost:{told[1]}"
        at = ["--bootstrap-server", configs["bootstrap.servers"]]
        asked = [sys.executable, "-m", "odradek", "topics", "list", *at, "--command-config", path]
        assert subprocess.run(asked, env=command_environment(), check=False, timeout=30).returncode == 0
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_documented_environment_opens_the_control_interface_of_the_image(tmp_path):
    documented = (REPOSITORY / "docs" / "operations.md").read_text().replace("\\\n", " ")
    [line] = [line for line in documented.splitlines() if line.startswith("$ docker run") and "CONTROL" in line]
    environment = dict(re.findall(r"-e (\w+)=(\S+)", line))
    assert environment["ODRADEK_CONTROL_HOST"] == "0.0.0.0"
    assert f"-p 127.0.0.1:{environment['ODRADEK_CONTROL_PORT']}:{environment['ODRADEK_CONTROL_PORT']} " in line
    assert not [name for name in re.findall(r"\w+", DOCKERFILE) if name.startswith("ODRADEK_CONTROL")]
    entrypoint = [sys.executable, "-m", *listed("ENTRYPOINT", stage("broker"))]
    command = [os.fspath(tmp_path) if word == "/data" else word for word in entrypoint]
    process = subprocess.Popen(
        [*command, *(word.replace(":9092", ":0") for word in listed("CMD", stage("broker"))[:2])],
        stdout=subprocess.PIPE,
        text=True,
        env=command_environment() | environment | {"ODRADEK_CONTROL_PORT": "0"},
    )
    try:
        told = re.fullmatch(r"odradek control on http://0\.0\.0\.0:(\d+)\n", process.stdout.readline())
        assert process.stdout.readline().startswith("odradek ready on ")
        with urlopen(f"http://127.0.0.1:{told[1]}/ready", timeout=20) as response:
            assert response.status == 200
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()
