"""AddOffsetsToTxn over a raw socket: the group's partition is in the transaction, or why not, in the words of the version."""

import pytest

from odradek.protocol.errors import ErrorCode
from tests.broker.api.transaction_requests import add_offsets, described, init, listed

NO_GROUP = "no-group"


@pytest.mark.parametrize("version", range(5))
def test_the_partition_that_coordinates_the_group_is_added(client, new_id, new_name, version):
    name = new_id()
    producer = init(client, name)
    assert add_offsets(client, name, producer, new_name(), version) == ErrorCode.NONE
    state = described(client, name)
    assert (state.transaction_state, [each.topic for each in state.topics]) == ("Ongoing", ["__consumer_offsets"])
    assert len(state.topics[0].partitions) == 1


def test_a_group_without_a_name_is_invalid(client, new_id):
    name = new_id()
    assert add_offsets(client, name, init(client, name), "") == ErrorCode.INVALID_GROUP_ID
    (state,) = listed(client, transactional_id_pattern=name).transaction_states
    assert state.transaction_state == "Empty"
