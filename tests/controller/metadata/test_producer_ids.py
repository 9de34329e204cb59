"""Producer ids come from blocks, each of which is asked for once and waited for."""

import pytest

from odradek.controller.metadata.cluster_metadata import ProducerIdManager
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply


def completed(outcome):
    reply = Reply()
    reply.complete(outcome)
    return reply


def test_ids_are_given_block_by_block():
    blocks = [range(3), range(10, 12)]
    manager = ProducerIdManager(lambda: completed(blocks.pop(0)))
    assert [manager.next_producer_id() for _ in range(5)] == [0, 1, 2, 10, 11]


def test_a_block_that_is_on_its_way_is_waited_for_and_asked_for_once():
    asked = []

    def request_block():
        asked.append(Reply())
        return asked[-1]

    manager = ProducerIdManager(request_block)
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            manager.next_producer_id()
        assert caught.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    asked[0].complete(range(5, 6))
    assert manager.next_producer_id() == 5
    assert len(asked) == 1


def test_a_block_that_was_refused_is_asked_for_again():
    outcomes = [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), range(1)]
    manager = ProducerIdManager(lambda: completed(outcomes.pop(0)))
    with pytest.raises(KafkaError):
        manager.next_producer_id()
    assert manager.next_producer_id() == 0
