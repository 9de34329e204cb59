"""``odradek serve --http-port``: a broker in a process of its own, steered from another."""

import asyncio
import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
from contextlib import contextmanager
from urllib.error import URLError

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.broker_process import command_environment
from tests.http.conftest import Client
from tests.needed import needed
from tests.project.documents import DOCS, code_blocks
from tests.secure import part_of, printed_by, python_of

SERVE = [sys.executable, "-m", "odradek", "serve", "--port", "0"]


@contextmanager
def served(*arguments, logged=(), context=None, is_secure=False, **environment):
    """(a client of its control interface, the broker's address); the process ends well, and has ``logged`` these events.

    A broker that ``is_secure`` does not say its token; what it prints for clients is the client's ``printed``.
    """
    process = subprocess.Popen(
        [*SERVE, "--http-port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=command_environment() | environment,
    )
    try:
        told = process.stdout.readline()
        url, token = re.fullmatch(r"odradek http on (https?://127\.0\.0\.1:\d+)(?: token (\S+))?\n", told).groups()
        address = process.stdout.readline().removeprefix("odradek ready on ").strip()
        client = Client(url, token or environment.get("ODRADEK_HTTP_TOKEN"), context)
        if is_secure:
            client.printed = printed_by(process.stdout)
        yield client, address
        process.terminate()
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, [json.loads(line)["event"] for line in err.splitlines()]) == (
            0,
            "",
            [*logged, "broker stopped"],
        )
    finally:
        process.kill()
        process.communicate()


async def test_a_week_passes_in_another_process_and_its_records_go():
    with served("--in-memory", logged=["HTTP request refused"], ODRADEK_HTTP_TOKEN="the suite's own") as (control, address):
        await control.done("POST", "/topics", {"name": "orders"})
        producer = Producer({"bootstrap.servers": address})
        producer.produce("orders", b"an order")
        assert producer.flush(10) == 0
        assert len((await control.done("GET", "/topics/orders/records"))["records"]) == 1
        await control.done("POST", "/clock/advance", {"days": 8})
        assert (await control.done("GET", "/topics/orders/records"))["records"] == []
        assert (await control("GET", "/topics", token="a guess"))[0] == 401


async def test_what_is_in_a_directory_is_there_for_the_next_process(tmp_path):
    for expected in (0, 1):
        with served("--data-dir", str(tmp_path)) as (control, _):
            await control.done("POST", "/topics", {"name": "orders"})
            assert len((await control.done("GET", "/topics/orders/records"))["records"]) == expected
            await control.done("POST", "/topics/orders/records", {"records": [{"value": "an order"}]})


async def test_a_broker_on_a_directory_is_forked_and_goes_back(tmp_path):
    with served("--data-dir", str(tmp_path / "data")) as (control, _):
        await control.done("POST", "/topics/orders/records", {"records": [{"value": "first"}]})
        number = (await control.done("POST", "/snapshots"))["snapshot"]
        await control.done("POST", "/topics/orders/records", {"records": [{"value": "second"}]})
        fork = (await control.done("POST", f"/snapshots/{number}/fork"))["fork"]
        assert [each["value"] for each in (await control.done("GET", f"/forks/{fork}/topics/orders/records"))["records"]] == [
            "first"
        ]
        assert len((await control.done("GET", "/topics/orders/records"))["records"]) == 2
        await control.done("POST", f"/snapshots/{number}/restore")
        assert [each["value"] for each in (await control.done("GET", "/topics/orders/records"))["records"]] == ["first"]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


async def test_rules_of_a_file_are_there_from_the_start(tmp_path):
    (tmp_path / "faults.json").write_text('[{"api": "Fetch", "delay_ms": 20}]')
    with served("--in-memory", "--faults", str(tmp_path / "faults.json")) as (control, _):
        assert [each["rule"] for each in (await control.done("GET", "/faults"))["faults"]] == ["api=FETCH, delay_ms=20"]


async def test_with_a_certificate_it_speaks_tls_and_nothing_else(certificates):
    pem, context = certificates.path("broker.pem"), certificates.client_context()
    logged = ["TLS handshake failed"]
    with served("--in-memory", "--http-certificate", pem, logged=logged, context=context) as (control, _):
        assert control.url.startswith("https://")
        # A client that says nothing keeps nobody waiting.
        address = ("127.0.0.1", int(control.url.rpartition(":")[2]))
        with socket.create_connection(address), socket.create_connection(address, 20) as plain:
            plain.sendall(b"GET /ready HTTP/1.1\r\n\r\n")
            assert not plain.makefile("rb").read().startswith(b"HTTP")
            assert (await control("GET", "/ready"))[0] == 200
            assert (await control.done("GET", "/topics"))["topics"] == []


async def test_a_new_certificate_is_shown_to_the_next_connection(certificates, tmp_path):
    path, trusting = tmp_path / "port.pem", certificates.client_context()
    shutil.copyfile(certificates.path("stray.pem"), path)
    arguments = ["--in-memory", "--http-certificate", str(path)]
    with served(*arguments, logged=["TLS handshake failed", "certificate reloaded"], context=trusting) as (control, _):
        with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
            await control("GET", "/ready")
        shutil.copyfile(certificates.path("broker.pem"), tmp_path / "new.pem")
        (tmp_path / "new.pem").replace(path)
        assert (await control("GET", "/ready"))[0] == 200


async def test_a_secure_broker_is_steered_by_what_it_prints(tmp_path):
    needed("curl")
    data = tmp_path / "a data directory"
    with served("--secure", "--data-dir", str(data), is_secure=True) as (control, _):
        assert control.token is None
        assert control.url.startswith("https://")
        # Clients come in by what is printed for them, and the line for the control API is a command.
        kafka = python_of(control.printed, "# librdkafka")
        producer = Producer(kafka)
        producer.produce("orders", b"an order")
        assert producer.flush(20) == 0
        line = part_of(control.printed, "# the control API")
        [shown] = [block for block in code_blocks(DOCS / "security.md", "text") if block.startswith("# the control API")]
        as_shown = line.replace("'", "").replace(str(data), "/home/you/data").replace(control.url, "https://127.0.0.1:8080")
        assert shown == f"# the control API\n{as_shown}\n"
        answer = await asyncio.to_thread(subprocess.run, line, shell=True, capture_output=True, text=True, timeout=20, check=True)
        assert json.loads(answer.stdout)["topics"][0]["name"] == "orders"

        control.token = (data / "secure-http-token").read_text()
        assert control.token not in control.printed
        control.context = ssl.create_default_context(cafile=data / "secure-ca.pem")
        # What comes of a snapshot lets the same clients in.
        number = (await control.done("POST", "/snapshots"))["snapshot"]
        fork = await control.done("POST", f"/snapshots/{number}/fork")
        there = AdminClient(kafka | {"bootstrap.servers": fork["bootstrap_servers"]})
        assert there.list_topics(timeout=20).topics.keys() == {"orders"}
        await control.done("POST", f"/snapshots/{number}/restore")
        assert AdminClient(kafka).list_topics(timeout=20).topics.keys() == {"orders"}
    assert (data / "secure-ca.pem").exists()


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (["--http-port", "0", "--in-memory", "--set", "num.partitions=none"], "num.partitions"),
        (["--http-port", "0", "--http-certificate", "none.pem"], "none.pem for configuration --http-certificate"),
        (["--http-port", "0", "--in-memory", "--http-host", "192.0.2.1"], "assign requested address"),
        (["--in-memory", "--topic", "orders:0"], "'orders:0' is not NAME or NAME:PARTITIONS"),
        (["--in-memory", "--topic", "a/b"], "a/b"),
        (["--in-memory", "--topic", ":3"], "':3' is not"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(arguments, mentions):
    done = subprocess.run(
        [*SERVE, *arguments], capture_output=True, text=True, timeout=30, env=command_environment(), check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("odradek: ")
    assert mentions in done.stderr
