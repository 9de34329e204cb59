"""All pairs of the flags of ``odradek serve``: each pair starts and does what both mean, or is refused in one line."""

import json
import ssl
import subprocess
import sys
import urllib.error
from itertools import combinations
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.broker_process import HTTP_LINE, READY_LINE, command_environment
from tests.secure import printed_by, python_of

SERVE = [sys.executable, "-m", "odradek", "serve", "--port", "0"]
TOKEN = "the suite's own"
SCRAPERS = "the scrapers' own"
FLAGS = (
    "--in-memory",
    "--data-dir",
    "--secure",
    "--http-port",
    "--token",
    "--metrics-token",
    "--no-page",
    "--page-read-only",
    "--topic",
    "--init",
    "--faults",
    "--http-certificate",
    "--no-http",
)
REFUSED = {
    ("--in-memory", "--data-dir"): "--in-memory and --data-dir do not go together",
    ("--http-port", "--no-http"): "--http-port and --no-http do not go together",
    ("--token", "--no-http"): "--token and --no-http do not go together",
    ("--metrics-token", "--no-http"): "--metrics-token and --no-http do not go together",
    ("--http-certificate", "--no-http"): "--http-certificate and --no-http do not go together",
    ("--page-read-only", "--no-http"): "--page-read-only and --no-http do not go together",
    ("--no-page", "--page-read-only"): "--page-read-only and --no-page do not go together",
}
NEED_A_PORT = ("--token", "--metrics-token", "--http-certificate", "--page-read-only")


def value_of(flag, directory, certificates):
    match flag:
        case "--data-dir":
            return [str(directory / "data")]
        case "--http-port":
            return ["0"]
        case "--token":
            return [TOKEN]
        case "--metrics-token":
            return [SCRAPERS]
        case "--topic":
            return ["orders:3"]
        case "--init":
            path = directory / "init.yaml"
            path.write_text("topics: {refused: {records: [{value: made}]}}\nusers: {alice: {password: secret}}\n")
            return [str(path)]
        case "--faults":
            rules = directory / "faults.json"
            rules.write_text('[{"api": "CreateTopics", "topic": "refused", "error": "POLICY_VIOLATION"}]')
            return [str(rules)]
        case "--http-certificate":
            return [certificates.path("broker.pem")]
    return []


@pytest.fixture
def start(tmp_path, certificates):
    """Start a broker with some flags."""
    processes = []

    def start(flags):
        words = [word for flag in flags for word in (flag, *value_of(flag, tmp_path, certificates))]
        # The user's data folder, for a broker that is told no other.
        environment = command_environment() | {"XDG_DATA_HOME": str(tmp_path / "home")}
        process = subprocess.Popen([*SERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def refusal_of(pair):
    if pair in REFUSED:
        return REFUSED[pair]
    if set(NEED_A_PORT) & set(pair) and "--http-port" not in pair:
        [first, *_] = [flag for flag in NEED_A_PORT if flag in pair]
        return f"{first} needs --http-port"
    return None


@pytest.mark.parametrize("pair", list(combinations(FLAGS, 2)), ids=" ".join)
def test_each_pair_means_something_or_is_refused(start, pair, tmp_path, certificates):
    process = start(pair)
    if (refusal := refusal_of(pair)) is not None:
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (2, "", f"odradek: {refusal}\n" if refusal.endswith("port") else err)
        assert refusal in err
        assert err.count("\n") == 1
        assert not (tmp_path / "data").exists()
        return
    line = process.stdout.readline()
    url = token = ""
    if line.startswith(HTTP_LINE):
        url, _, token = line.removeprefix(HTTP_LINE).strip().partition(" token ")
        line = process.stdout.readline()
    assert line.startswith(READY_LINE), process.communicate()
    client = {"bootstrap.servers": line.removeprefix(READY_LINE).strip()}
    if "--secure" in pair:
        client = python_of(printed_by(process.stdout), "# librdkafka")
    produces(client)
    checks(pair, client, url, token, tmp_path, certificates)
    process.terminate()
    assert process.wait(20) == 0
    if "--in-memory" in pair:
        assert not (tmp_path / "home").exists()


def produces(client):
    producer = Producer(client)
    producer.produce("any", b"a record")
    assert producer.flush(20) == 0


def checks(pair, client, url, token, directory, certificates):
    """Check the promise of each flag of a pair."""
    admin = AdminClient(client)
    if "--topic" in pair:
        assert len(admin.list_topics("orders", timeout=20).topics["orders"].partitions) == 3
    if "--init" in pair:
        # The rule of --faults refuses this topic to clients.
        assert "refused" in admin.list_topics(timeout=20).topics
        assert "alice" in admin.describe_user_scram_credentials().result(20)
    if "--data-dir" in pair:
        assert (directory / "data" / "meta.properties").exists()
    if "--in-memory" in pair and "--secure" in pair:
        assert not Path(client["ssl.ca.location"]).is_relative_to(directory)
    assert bool(url) == ("--http-port" in pair)
    if not url:
        return
    context = None
    if "--secure" in pair or "--http-certificate" in pair:
        assert url.startswith("https://")
        context = ssl.create_default_context(cafile=client.get("ssl.ca.location", certificates.path("ca.pem")))
    if "--secure" in pair:
        assert not token
        token = Path(client["ssl.ca.location"]).with_name("secure-http-token").read_text()
    assert asked(f"{url}/ready", "", context)["is_running"]
    names = {topic["name"] for topic in asked(f"{url}/v1/topics", TOKEN if "--token" in pair else token, context)["topics"]}
    made = {"--topic": "orders", "--init": "refused"}
    assert names == {"any", *(topic for flag, topic in made.items() if flag in pair)}
    if "--metrics-token" in pair or "--secure" in pair:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            opened(f"{url}/metrics", "", context)
    else:
        assert opened(f"{url}/metrics", "", context)
    if "--metrics-token" in pair:
        assert opened(f"{url}/metrics", SCRAPERS, context)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            opened(f"{url}/v1/topics", SCRAPERS, context)
    # Without the page there is a text that names the paths.
    page = opened(url, "", context).decode()
    assert ("<html" in page, "read-only" in page) == ("--no-page" not in pair, "--page-read-only" in pair)
    if "--faults" in pair:
        assert len(asked(f"{url}/v1/faults", token, context)["faults"]) == 1


def asked(url, token, context):
    return json.loads(opened(url, token, context))


def opened(url, token, context):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urlopen(Request(url, headers=headers), timeout=20, context=context) as answer:
        return answer.read()
