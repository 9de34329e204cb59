import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, create

M = messages(ApiKey.LIST_PARTITION_REASSIGNMENTS)


@pytest.mark.parametrize("topics", [None, [M.ListPartitionReassignmentsTopics(name="t", partition_indexes=(0,))]])
def test_no_replica_is_on_its_way(core, topics):
    create(core, "t")
    response = ask(core, ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=topics)
    assert (response.error_code, list(response.topics)) == (ErrorCode.NONE, [])
