"""The principal of a connection by TLS, as a gate in front of the handlers sees it."""

import asyncio
import contextlib

import pytest

from odradek.broker.start.broker_server import BrokerServer
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config.broker_config import load
from odradek.common.context import ANONYMOUS
from odradek.common.logging import lines_to
from odradek.protocol.api_keys import ApiKey
from tests.raw_client import encode_request
from tests.tls import ORDERS

# Connections and their ends are the event loop's.
pytestmark = pytest.mark.asyncio(loop_factories=["asyncio", "uvloop"])


class Recorder:
    """A gate that lets all pass, and notes who came."""

    def __init__(self):
        self.principals = []

    def admit(self, context, request):
        self.principals.append((context.listener_name, context.session.principal))

    def release(self, context, response):
        return response


@contextlib.asynccontextmanager
async def serving(certificates, directory, **ssl_configs):
    """A server in this process, its gate, and the lines of its log but for that of its end."""
    lines = []
    settings = {"listeners": "SSL://127.0.0.1:0", "log.dirs": str(directory), **certificates.settings(**ssl_configs)}
    with lines_to(lambda level, event, fields: lines.append((event, dict(fields)))):
        server = await BrokerServer.start(SharedServer(load(None, settings)))
        gate = Recorder()
        server.broker.dispatcher.add_gate(gate)
        try:
            yield server, gate, lines
        finally:
            await server.stop()
            [stopped] = [line for line in lines if line[0] == "broker stopped"]
            lines.remove(stopped)


async def ask(server, context):
    """Send one request; the answer's first bytes, empty where the broker closed."""
    reader, writer = await asyncio.open_connection(*server.bound_address, ssl=context, server_hostname="localhost")
    try:
        writer.write(encode_request(ApiKey.API_VERSIONS, 0))
        return await asyncio.wait_for(reader.read(4), 10)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


RULES = "RULE:^CN=(.*?),OU=Shop.*$/$1/U"


@pytest.mark.parametrize(
    ("auth", "client", "rules", "principal"),
    [
        ("required", "orders", "DEFAULT", ORDERS),
        ("requested", "orders", RULES, "User:ORDERS"),
        ("requested", None, RULES, ANONYMOUS),
        ("none", "orders", "DEFAULT", ANONYMOUS),
    ],
)
async def test_a_request_has_the_principal_of_its_clients_certificate(certificates, tmp_path, auth, client, rules, principal):
    configs = {"client_auth": auth, "principal_mapping_rules": rules}
    async with serving(certificates, tmp_path, **configs) as (server, gate, lines):
        assert await ask(server, certificates.client_context(client))
    assert gate.principals == [("SSL", principal)]
    assert lines == []


async def test_a_client_to_whom_no_rule_applies_is_refused(certificates, tmp_path):
    configs = {"client_auth": "required", "principal_mapping_rules": "RULE:^CN=else$/x/"}
    async with serving(certificates, tmp_path, **configs) as (server, gate, lines):
        with contextlib.suppress(OSError):
            assert await ask(server, certificates.client_context("orders")) == b""
    assert gate.principals == []
    [(event, fields)] = lines
    assert event == "TLS handshake failed"
    assert "CN=orders,OU=Shop,O=Example" in fields["cause"]
    assert fields["peer"].startswith("127.0.0.1:")


async def test_a_client_that_resumes_its_session_is_who_it_was(certificates, tmp_path):
    async with serving(certificates, tmp_path, client_auth="required", enabled_protocols="TLSv1.2") as (server, gate, _):
        context = certificates.client_context("orders")
        loop = asyncio.get_running_loop()
        was_resumed = await loop.run_in_executor(None, _ask_twice, server.bound_address, context)
    assert was_resumed
    assert gate.principals == [("SSL", ORDERS)] * 2


def _ask_twice(address, context):
    import socket

    session = None
    for _ in range(2):
        with (
            socket.create_connection(address, 10) as plain,
            context.wrap_socket(plain, server_hostname="localhost", session=session) as client,
        ):
            client.sendall(encode_request(ApiKey.API_VERSIONS, 0))
            assert client.recv(4)
            session = client.session
            was_resumed = client.session_reused
    return was_resumed
