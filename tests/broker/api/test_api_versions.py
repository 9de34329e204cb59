"""ApiVersions keeps what a client says of its software in the session (KIP-511)."""

from types import SimpleNamespace

import pytest

from odradek.broker.api import SERVED, load_handler
from odradek.common.context import RequestContext, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

_m = messages(ApiKey.API_VERSIONS)


def ask(session, version, subscriptions=(), **fields):
    image = SimpleNamespace(features={}, configured=lambda _type: list(subscriptions))
    controller = SimpleNamespace(image=image, log_end_offset=1, kraft_version=0)
    services = SimpleNamespace(controller=controller, cluster_id="mine", node_id=7)
    context = RequestContext(ApiKey.API_VERSIONS, version, 1, "client", session)
    return load_handler(ApiKey.API_VERSIONS)(services, context, _m.ApiVersionsRequest(**fields))


@pytest.fixture
def session():
    return Session("PLAINTEXT", ("10.0.0.1", 5))


def test_the_software_is_known_once_it_has_been_named(session):
    assert (session.client_software_name, session.client_software_version) == (None, None)
    answer = ask(session, 4, {"somebody's"}, client_software_name="librdkafka", client_software_version="2.8.0")
    assert answer.error_code == ErrorCode.NONE
    assert len(answer.api_keys) == len(SERVED)
    assert (session.client_software_name, session.client_software_version) == ("librdkafka", "2.8.0")


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a b", "1"), ("raw", "-1"), ("raw", "")])
def test_a_name_or_version_that_is_none_is_refused_and_not_kept(session, name, version):
    answer = ask(session, 3, client_software_name=name, client_software_version=version)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert session.client_software_name is None


def test_older_clients_name_no_software(session):
    assert ask(session, 2).error_code == ErrorCode.NONE
    assert session.client_software_name is None


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [
        (None, -1, ErrorCode.NONE),
        ("mine", 7, ErrorCode.NONE),
        ("mine", 8, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("other", 7, ErrorCode.REBOOTSTRAP_REQUIRED),
        (None, 7, ErrorCode.INVALID_REQUEST),
        ("mine", -1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_client_that_takes_the_broker_for_another_starts_again(session, cluster_id, node_id, code):
    software = {"client_software_name": "raw", "client_software_version": "1"}
    answer = ask(session, 5, cluster_id=cluster_id, node_id=node_id, **software)
    assert (answer.error_code, bool(answer.api_keys)) == (code, code == ErrorCode.NONE)


@pytest.mark.parametrize("subscriptions", [set(), {"somebody's"}])
def test_telemetry_is_offered_as_long_as_somebody_subscribes_to_it(session, subscriptions):
    offered = {each.api_key for each in ask(session, 0, subscriptions).api_keys}
    telemetry = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    assert SERVED.keys() - offered == (set() if subscriptions else telemetry)
