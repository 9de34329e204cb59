import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.bed import ask
from tests.broker.api.voter_requests import INVALID, VOTER, raise_kraft_version


def remove(broker, **changed):
    response = ask(broker, ApiKey.REMOVE_RAFT_VOTER, **{**VOTER, **changed})
    assert response.error_message
    return response.error_code


@pytest.mark.parametrize(("changed", "error"), INVALID)
@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_request_that_names_no_voter_of_this_cluster_is_refused_at_each_kraft_version(core, kraft_version, changed, error):
    if kraft_version:
        raise_kraft_version(core)
    assert remove(core, **changed) == error


def test_voters_that_are_configured_cannot_be_removed(core):
    assert remove(core, voter_id=core.node_id) == ErrorCode.UNSUPPORTED_VERSION


def test_neither_the_last_voter_nor_one_that_is_none_can_be_removed(core):
    raise_kraft_version(core)
    directory_id = core.log_manager.directories.metadata.identity.directory_id
    assert remove(core, voter_id=core.node_id, voter_directory_id=directory_id) == ErrorCode.VOTER_NOT_FOUND
    assert remove(core, cluster_id=core.cluster_id) == ErrorCode.VOTER_NOT_FOUND
