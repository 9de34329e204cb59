"""The image and the compose file, as far as they can be held to account without a container engine."""

import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from urllib.request import urlopen

import pytest

from odradek.common.config.broker_config import load
from odradek.properties import parse_properties
from tests.broker_process import REPOSITORY, command_environment
from tests.needed import needed_c_compiler
from tests.project.containers import (
    DOCKERFILE,
    SERVICES,
    STAGES,
    VOLUMES,
    Instruction,
    compile_little,
    copy_from_context,
    words_of,
)


def settings(arguments):
    """What ``--set`` options set; nothing else may stand among them."""
    assert arguments[::2] == ["--set"] * (len(arguments) // 2)
    return dict(argument.split("=", 1) for argument in arguments[1::2])


def test_the_settings_of_the_image_are_a_valid_configuration():
    config = load(None, settings(words_of("broker", "CMD")))
    assert config.warnings == ()


def test_the_settings_of_the_compose_file_are_a_valid_configuration_of_two_listeners():
    config = load(None, settings(SERVICES["odradek"]["command"]))
    assert config.warnings == ()
    assert len(config["listeners"]) == 2


def test_the_host_is_told_localhost_and_other_containers_the_service_name():
    config = load(None, settings(SERVICES["odradek"]["command"]))
    assert set(config["advertised.listeners"]) == {"HOST://localhost:9092", "INTERNAL://odradek:29092"}
    assert SERVICES["odradek"]["ports"] == ["127.0.0.1:9092:9092"]


def test_what_is_published_is_on_this_machine_alone_and_a_listener_is_bound_to_it():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published.keys() == {"odradek", "broker-1", "broker-2", "broker-3"}
    for name, [port] in published.items():
        address, _, inside = port.split(":")
        bound = load(None, settings(SERVICES[name]["command"]))["listeners"]
        assert address == "127.0.0.1"
        assert f"HOST://0.0.0.0:{inside}" in bound


def test_spark_waits_for_a_healthy_broker_and_reads_by_the_internal_listener():
    spark = SERVICES["spark"]
    assert spark["profiles"] == ["spark"]
    assert spark["depends_on"] == {"odradek": {"condition": "service_healthy"}}
    assert spark["command"] == ["odradek:29092"]


def test_data_is_on_a_volume_where_the_broker_keeps_it():
    assert "data:/data" in SERVICES["odradek"]["volumes"]
    assert words_of("broker", "ENTRYPOINT") == ["odradek", "serve", "--data-dir", "/data"]
    assert words_of("broker", "VOLUME") == ["/data"]


NODES = {name: service for name, service in SERVICES.items() if service.get("profiles") == ["cluster"]}


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
    assert all(volume.endswith(":/data") and volume.split(":")[0] in VOLUMES for volume in volumes)
    command = f"docker compose --profile cluster up -d {' '.join(NODES)}"
    for document in (REPOSITORY / "docs" / "operations.md", REPOSITORY / "docker-compose.yml"):
        assert command in document.read_text()


@pytest.mark.parametrize("name", ["broker", "spark"])
def test_what_runs_is_not_root(name):
    assert words_of(name, "USER") != ["root"]


def test_the_image_that_is_built_without_a_target_is_the_broker():
    assert list(STAGES)[-1] == "broker"


def test_the_spark_image_has_the_version_that_the_pipeline_extra_asks_for():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    [requirement] = [name for name in project["optional-dependencies"]["pipeline"] if name.startswith("pyspark")]
    assert Instruction("RUN", f'pip install --no-cache-dir "{requirement}"') in STAGES["spark"]


@pytest.fixture
def copied(tmp_path):
    """Do what a stage copies from the repository, in an empty root."""

    def copy(stage):
        for name, value in STAGES[stage]:
            if name == "COPY" and not value.startswith("--from="):
                copy_from_context(value, tmp_path, *words_of(stage, "WORKDIR"))
        return tmp_path.joinpath(words_of(stage, "WORKDIR")[0][1:])

    return copy


@pytest.mark.timeout(240)
@pytest.mark.further
def test_what_the_build_stage_copies_is_all_that_the_compiled_build_needs(copied, tmp_path):
    needed_c_compiler()
    source = copied("build")
    compile_little(source)
    # The tests' environment has what pip would fetch. The whole is built by the campaign image-steps.
    command = [*(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"), tmp_path, source]
    # Outside of this repository, whose odradek is not the one to be built.
    environment = {**os.environ, "ODRADEK_COMPILE": "1", "PYTHONPATH": ""}
    built = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.glob("odradek-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if re.match(r"odradek/protocol/varint\..*(so|pyd)$", name)]
    modules = {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "odradek").rglob("*.py")}
    assert modules <= set(names)


def test_what_the_spark_stage_copies_is_the_program_that_it_runs(copied):
    assert words_of("spark", "ENTRYPOINT") == ["python", *(path.name for path in copied("spark").iterdir())]


def test_the_volume_for_spark_is_where_its_program_keeps_what_it_fetches(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/spark")
    program = runpy.run_path(os.fspath(REPOSITORY / "docs" / "examples" / "spark_read.py"))
    [volume] = SERVICES["spark"]["volumes"]
    assert program["IVY_CACHE"].is_relative_to(volume.partition(":")[2])


def test_the_health_check_is_a_round_trip_to_the_port_exposed():
    assert words_of("broker", "HEALTHCHECK") == ["python", "-m", "odradek.cli.health", "127.0.0.1:9092"]
    assert words_of("broker", "EXPOSE") == ["9092"]


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
    assert words_of("build", "RUN")[-1] == ".[tls]"


def test_the_documented_secure_run_is_healthy_and_opens_to_its_file_alone(tmp_path, monkeypatch):
    [words] = [words for words in documented_runs() if "--secure" in words]
    arguments = words[words.index("odradek") + 1 :]
    assert words[words.index("-p") + 1] == "9092:9092"
    monkeypatch.setenv("TMPDIR", os.fspath(tmp_path))
    entrypoint = [sys.executable, "-m", *words_of("broker", "ENTRYPOINT")]
    line = [os.fspath(tmp_path / "data") if word == "/data" else word for word in entrypoint]
    process = subprocess.Popen([*line, *arguments, "--port", "0"], stdout=subprocess.PIPE, text=True, env=command_environment())
    try:
        # As clients outside are told.
        told = re.fullmatch(r"odradek ready on 0\.0\.0\.0:(\d+)\n", process.stdout.readline())
        health = [
            sys.executable if word == "python" else word.replace("9092", told[1]) for word in words_of("broker", "HEALTHCHECK")
        ]
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


def test_the_documented_environment_opens_the_http_port_of_the_image(tmp_path):
    documented = (REPOSITORY / "docs" / "operations.md").read_text().replace("\\\n", " ")
    [line] = [line for line in documented.splitlines() if line.startswith("$ docker run") and "HTTP" in line]
    environment = dict(re.findall(r"-e (\w+)=(\S+)", line))
    assert environment["ODRADEK_HTTP_HOST"] == "0.0.0.0"
    assert f"-p 127.0.0.1:{environment['ODRADEK_HTTP_PORT']}:{environment['ODRADEK_HTTP_PORT']} " in line
    assert not [name for name in re.findall(r"\w+", DOCKERFILE) if name.startswith("ODRADEK_HTTP")]
    entrypoint = [sys.executable, "-m", *words_of("broker", "ENTRYPOINT")]
    command = [os.fspath(tmp_path) if word == "/data" else word for word in entrypoint]
    process = subprocess.Popen(
        [*command, *(word.replace(":9092", ":0") for word in words_of("broker", "CMD")[:2])],
        stdout=subprocess.PIPE,
        text=True,
        env=command_environment() | environment | {"ODRADEK_HTTP_PORT": "0"},
    )
    try:
        told = re.fullmatch(r"odradek http on http://localhost:(\d+)\n", process.stdout.readline())
        assert process.stdout.readline().startswith("odradek ready on ")
        with urlopen(f"http://127.0.0.1:{told[1]}/ready", timeout=20) as response:
            assert response.status == 200
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()
