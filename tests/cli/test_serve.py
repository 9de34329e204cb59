"""``odradek serve`` as a process: its one line on stdout, its signals, and every way it refuses to start."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from odradek.cli.health import check
from odradek.cli.serve_node import usable_cores
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch
from tests.broker_process import command_environment
from tests.raw_client import RawClient


def odradek_serve(*arguments, **environment):
    """Run ``odradek serve`` to its end, which must come by itself."""
    command = [sys.executable, "-m", "odradek", "serve", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=30, env=command_environment() | environment, check=False
    )


def assert_refused(process, *mentions):
    """One line on stderr, with ``mentions`` in it; nothing on stdout; status 2."""
    assert process.stdout == ""
    assert process.stderr.count("\n") == 1, process.stderr
    assert process.stderr.startswith("odradek: ")
    for mention in mentions:
        assert str(mention) in process.stderr
    assert process.returncode == 2


def listing(directory):
    """Every file under a directory with its bytes; None where there is no directory."""
    if not directory.exists():
        return None
    return {path.relative_to(directory): path.is_file() and path.read_bytes() for path in directory.rglob("*")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_the_broker_within_5_seconds_with_status_0_and_one_line(tmp_path, number):
    command = [sys.executable, "-m", "odradek", "serve", "--port", "0", "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=command_environment()
    ) as process:
        ready = process.stdout.readline()
        process.send_signal(number)
        started = time.monotonic()
        out, err = process.communicate(timeout=10)
        took = time.monotonic() - started
    assert ready.startswith("odradek ready on 127.0.0.1:")
    assert (out, err.count("\n"), process.returncode) == ("", 1, 0)
    line = json.loads(err)
    assert (line["event"], line["level"]) == ("broker stopped", "info")
    assert 0 <= line["took_ms"] <= took * 1000
    assert took < 5


def test_a_graceful_stop_marks_a_clean_shutdown(broker_process):
    broker = broker_process()
    marker = broker.data_dir / ".kafka_cleanshutdown"
    assert not marker.exists()
    assert broker.stop() == 0
    assert marker.exists()


def test_a_metadata_record_of_an_unknown_type_stops_the_start_with_one_line(broker_process):
    broker = broker_process()
    assert broker.stop() == 0
    segment = broker.data_dir / "__cluster_metadata-0" / "00000000000000000000.log"
    value = b"\1\x63\0" + b"\0"
    offset = [header for _, header in iter_batches(segment.read_bytes())][-1].next_offset
    batch = build_batch([Record(timestamp=0, value=value)], base_offset=offset, leader_epoch=1)
    segment.write_bytes(segment.read_bytes() + batch)
    before = segment.read_bytes()
    process = odradek_serve("--port", 0, "--data-dir", broker.data_dir)
    assert (process.returncode, process.stdout) == (1, "")
    said = f"odradek: {segment}, offset {offset}: a metadata record of unknown type 99, version 0; a newer broker wrote it"
    assert process.stderr.startswith(said)
    assert process.stderr.count("\n") == 1
    assert segment.read_bytes() == before


def test_a_broker_stops_while_a_client_is_connected_and_silent(broker_process):
    broker = broker_process()
    with socket.create_connection((broker.host, broker.port)):
        assert broker.stop() == 0


def test_a_broker_comes_back_on_the_same_port_and_data(broker_process):
    broker = broker_process()
    port = broker.port
    broker.restart()
    assert broker.port == port
    check(broker.host, broker.port)


def test_a_second_broker_on_the_same_directory_is_refused_and_the_first_unharmed(broker_process):
    broker = broker_process()
    before = listing(broker.data_dir)
    assert_refused(odradek_serve("--port", 0, "--data-dir", broker.data_dir), broker.data_dir)
    assert listing(broker.data_dir) == before
    check(broker.host, broker.port)


def test_a_directory_whose_broker_was_killed_is_free(broker_process):
    broker = broker_process()
    broker.kill9()
    broker.start()
    check(broker.host, broker.port)


def test_a_start_after_a_kill_tells_what_it_recovered(broker_process):
    broker = broker_process()
    with RawClient(broker.host, broker.port) as client:
        topic = {"name": "orders", "num_partitions": 3, "replication_factor": 1, "assignments": [], "configs": []}
        client.call(ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout_ms=1000)
    broker.kill9()
    broker.start()
    broker.stop()
    broker.start()
    broker.stop()
    told = [json.loads(line) for line in broker.stderr.splitlines()]
    assert [line["event"] for line in told] == [
        "logs recovered: the last stop was not clean",
        "broker stopped",
        "broker stopped",
    ]
    assert (told[0]["logs"], told[0]["level"]) == (3, "info")
    assert told[0]["took_ms"] >= 0


def test_a_port_in_use_is_refused_and_no_data_directory_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = f"cannot bind 127.0.0.1:{port}: address already in use; choose another port, or port 0 for a free one"
        assert_refused(odradek_serve("--port", port, "--data-dir", tmp_path / "data"), told)
    assert listing(tmp_path / "data") is None


def test_a_port_in_use_leaves_an_unclean_data_directory_to_the_next_start(broker_process):
    broker = broker_process()
    broker.kill9()
    before = listing(broker.data_dir)
    with socket.create_server((broker.host, broker.port)):
        assert_refused(odradek_serve("--port", broker.port, "--data-dir", broker.data_dir), broker.port, "in use")
    assert listing(broker.data_dir) == before


@pytest.mark.parametrize(
    ("setting", "mentions"),
    [
        ("num.partitions=many", ["num.partitions", "many"]),
        ("num.partitions=0", ["num.partitions", "0"]),
        ("listeners=nonsense", ["listeners", "nonsense"]),
        ("listeners=SSL://127.0.0.1:0", ["ssl.keystore.location", "needs a certificate"]),
        ("listeners=SASL_SSL://127.0.0.1:0", ["ssl.keystore.location", "needs a certificate"]),
        ("listeners=KERBEROS://127.0.0.1:0", ["listeners", "KERBEROS"]),
    ],
)
def test_a_bad_value_is_refused_and_no_data_directory_made(tmp_path, setting, mentions):
    assert_refused(odradek_serve("--set", setting, "--data-dir", tmp_path / "data"), *mentions)
    assert listing(tmp_path / "data") is None


@pytest.mark.parametrize(
    ("key", "value"), [("security.inter.broker.protocol", "SASL_PLAINTEXT"), ("inter.broker.listener.name", "sasl_plaintext")]
)
def test_a_broker_of_a_cluster_has_to_say_as_who_it_logs_in_at_the_others(tmp_path, key, value):
    settings = {
        "process.roles": "broker",
        "node.id": "2",
        "controller.quorum.voters": "1@127.0.0.1:1",
        "controller.listener.names": "CONTROLLER",
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        key: value,
    }
    set_ = [word for name, text in settings.items() for word in ("--set", f"{name}={text}")]
    mentions = ("listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config", "no username and password")
    assert_refused(odradek_serve(*set_, "--data-dir", tmp_path / "data"), *mentions)


def test_a_store_that_cannot_be_read_is_refused_and_no_data_directory_made(tmp_path):
    configs = ("listeners=SSL://127.0.0.1:0", "ssl.keystore.type=PEM", f"ssl.keystore.location={tmp_path / 'none.pem'}")
    told = [word for config in configs for word in ("--set", config)]
    mentions = ("ssl.keystore.location", tmp_path / "none.pem", "a file that can be read")
    assert_refused(odradek_serve(*told, "--data-dir", tmp_path / "data"), *mentions)
    assert listing(tmp_path / "data") is None


def test_a_config_file_that_is_not_there_is_refused(tmp_path):
    assert_refused(odradek_serve("--config", tmp_path / "server.properties"), tmp_path / "server.properties")


def test_a_config_file_that_is_not_text_is_refused(tmp_path):
    file = tmp_path / "server.properties"
    file.write_bytes(b"\xff\xfe")
    assert_refused(odradek_serve("--config", file), file)


def test_a_data_directory_that_is_a_file_is_refused(tmp_path):
    file = tmp_path / "data"
    file.write_text("mine")
    assert_refused(odradek_serve("--port", 0, "--data-dir", file), file)
    assert file.read_text() == "mine"


def test_a_host_that_is_not_this_machines_is_refused(tmp_path):
    assert_refused(odradek_serve("--host", "192.0.2.1", "--port", 0, "--data-dir", tmp_path / "data"), "192.0.2.1")


def test_flags_weigh_more_than_set_and_set_more_than_the_file(broker_process, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text("listeners=PLAINTEXT://192.0.2.1:1\nlog.dirs=/proc/nowhere\nnum.partitions=0\n")
    broker = broker_process(arguments=("--config", str(config)), settings={"num.partitions": 3, "log.dirs": "/proc/nor/here"})
    assert (broker.data_dir / "meta.properties").exists()


def test_an_unknown_key_is_a_warning_that_names_the_nearest_one(broker_process):
    broker = broker_process(settings={"num.partition": 3})
    broker.stop()
    events = [json.loads(line) for line in broker.stderr.splitlines()]
    assert [event["level"] for event in events] == ["warning", "info"]
    assert "num.partitions" in events[0]["event"]


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is named by XDG_DATA_HOME on Linux")
def test_the_users_data_folder_is_used_and_logged(tmp_path):
    command = [sys.executable, "-m", "odradek", "serve", "--port", "0"]
    environment = command_environment() | {"XDG_DATA_HOME": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout.readline().startswith("odradek ready on ")
        logged = json.loads(process.stderr.readline())
        process.terminate()
        process.communicate(timeout=10)
    assert logged["path"] == str(tmp_path / "odradek")
    assert (tmp_path / "odradek" / "meta.properties").exists()


def test_start_up_does_not_import_what_only_later_or_nobody_needs(tmp_path):
    assert imported_by_serve(tmp_path / "plain").isdisjoint({"odradek.http", "odradek.testing"})
    imported = imported_by_serve(tmp_path / "with-http", "--http-port", "0")
    assert {"odradek.broker.start.server", "odradek.http.port"} <= imported


def imported_by_serve(directory, *arguments):
    """The modules that a broker has imported when it is ready, without those that none may import by then."""
    directory.mkdir()
    served = ["serve", "--port", "0", "--data-dir", str(directory / "data"), *arguments]
    with (
        (directory / "stderr").open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "odradek", *served],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=command_environment(),
        ) as process,
    ):
        while not process.stdout.readline().startswith("odradek ready on "):
            assert process.poll() is None
        imported = {line.rpartition("|")[2].strip() for line in (directory / "stderr").read_text().splitlines()}
        process.terminate()
    assert imported.isdisjoint({"cramjam", "http", "hypothesis", "platformdirs", "prometheus_client"})
    assert imported.isdisjoint({"h11", "odradek.page.app", "starlette", "uvicorn"})
    return imported


def test_an_http_port_in_use_is_refused_and_no_data_directory_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for more in ((), ("--secure",)):
            refused = odradek_serve("--port", 0, "--http-port", port, "--data-dir", tmp_path / "data", *more)
            assert_refused(refused, f"cannot bind 127.0.0.1:{port}: address already in use; choose another --http-port")
    assert listing(tmp_path / "data") is None


def test_a_secure_broker_whose_port_is_in_use_makes_no_files(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_refused(odradek_serve("--port", port, "--secure", "--data-dir", tmp_path / "data"), port, "in use")
    assert listing(tmp_path / "data") is None


@pytest.mark.parametrize(("window_us", "is_polling"), [(1_000_000, usable_cores() > 1), (0, False)])
def test_a_client_that_comes_back_in_time_finds_the_broker_awake(broker_process, window_us, is_polling):
    broker = broker_process(settings={"socket.busy.poll.us": window_us}, arguments=("--http-port", "0"))
    with RawClient(broker.host, broker.port) as client:
        for _ in range(50):
            client.call(ApiKey.API_VERSIONS, 2)
    with urllib.request.urlopen(f"{broker.http_url}/metrics", timeout=10) as answer:
        scraped = answer.read().decode().splitlines()
    (line,) = [line for line in scraped if line.startswith("odradek_event_loop_busy_polls_total ")]
    assert (float(line.split()[1]) > 0) == is_polling


@pytest.mark.parametrize(("level", "expected"), [("info", {"info", "warning"}), ("warning", {"warning"}), ("error", set())])
def test_lines_of_the_log_below_its_level_are_left_out(broker_process, level, expected):
    broker = broker_process(settings={"log.no.such.config": 1}, arguments=("--log-level", level))
    broker.stop()
    assert {json.loads(line)["level"] for line in broker.stderr.splitlines()} == expected
