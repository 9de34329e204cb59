import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask
from tests.broker.api.voter_requests import INVALID, VOTER, raise_kraft_version

LISTENER = messages(ApiKey.ADD_RAFT_VOTER).Listener


def endpoints(*names):
    return [LISTENER(name=name, host="h", port=9093) for name in names]


VALID = {**VOTER, "listeners": endpoints("CONTROLLER")}


def add(broker, version=None, **changed):
    response = ask(broker, ApiKey.ADD_RAFT_VOTER, version, **{**VALID, **changed})
    assert response.error_message
    return response.error_code


@pytest.mark.parametrize(
    ("changed", "error"),
    [*INVALID, ({"listeners": ()}, ErrorCode.INVALID_REQUEST), ({"listeners": endpoints("OTHER")}, ErrorCode.INVALID_REQUEST)],
)
@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_request_that_names_no_voter_of_this_cluster_is_refused_at_each_kraft_version(core, kraft_version, changed, error):
    if kraft_version:
        raise_kraft_version(core)
    assert add(core, **changed) == error


@pytest.mark.parametrize("voter_id", [1, 9])
def test_voters_that_are_configured_cannot_be_added_to(core, voter_id):
    assert add(core, voter_id=voter_id) == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("version", "fields"), [(0, {}), (1, {"ack_when_committed": True}), (1, {"ack_when_committed": False})])
def test_the_only_voter_is_one_already_and_stays_the_only_one(core, version, fields):
    raise_kraft_version(core)
    assert core.node_id == 1
    assert add(core, version, voter_id=1, **fields) == ErrorCode.DUPLICATE_VOTER
    assert add(core, version, cluster_id=core.cluster_id, **fields) == ErrorCode.UNSUPPORTED_VERSION


def test_one_of_several_endpoints_is_the_controllers_whatever_its_case(core):
    raise_kraft_version(core)
    assert add(core, voter_id=1, listeners=endpoints("OTHER", "controller")) == ErrorCode.DUPLICATE_VOTER
