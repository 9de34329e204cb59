"""The page's way to guard metrics, as a scraper follows it."""

import re
import shlex
import urllib.error
import urllib.request
from ssl import create_default_context

import pytest
import yaml

from tests.project.documents import DOCS, block_with, code_blocks

PAGE = DOCS / "operations.md"
GUARDED = block_with(PAGE, "yaml", "credentials_file")


def scrape(url, config, directory):
    """As Prometheus does by this config."""
    headers = {}
    if "authorization" in config:
        token = (directory / config["authorization"]["credentials_file"]).read_text().strip()
        headers["Authorization"] = f"{config['authorization'].get('type', 'Bearer')} {token}"
    context = create_default_context(cafile=directory / config["tls_config"]["ca_file"])
    target = re.sub(r"://[\d.]+:", "://localhost:", url)
    with urllib.request.urlopen(urllib.request.Request(target, headers=headers), timeout=10, context=context) as answer:
        return answer.read()


def test_the_documented_scraper_is_let_in_and_none_without_its_token(broker_process, certificates, tmp_path, monkeypatch):
    [block] = [block for block in code_blocks(PAGE, "console") if "export ODRADEK_METRICS_TOKEN" in block]
    exported, served = block.splitlines()
    name, _, token = exported.removeprefix("$ export ").partition("=")
    monkeypatch.setenv(name, token)
    words = shlex.split(served.replace("9404", "0").replace("0.0.0.0", "127.0.0.1"))[3:]
    (tmp_path / "certs").symlink_to(certificates.directory)
    (tmp_path / "odradek.token").write_text(f"{token}\n")
    monkeypatch.chdir(tmp_path)
    broker = broker_process(arguments=tuple(words))
    [config] = yaml.safe_load(GUARDED)["scrape_configs"]
    url = f"{broker.http_url}/metrics"
    assert url.startswith(f"{config['scheme']}://")
    assert b"kafka_server_replicamanager_partitioncount" in scrape(url, config, tmp_path)
    del config["authorization"]
    with pytest.raises(urllib.error.HTTPError, match="401"):
        scrape(url, config, tmp_path)
    assert token not in broker.stderr
