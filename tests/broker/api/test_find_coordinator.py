import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply
from tests.broker.api.bed import ask


@pytest.mark.parametrize(("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
def test_this_broker_coordinates_and_the_topic_behind_is_there(core, key_type, topic):
    answers = ask(core, ApiKey.FIND_COORDINATOR, key_type=key_type, coordinator_keys=("a", "b")).coordinators
    assert [(answer.key, answer.node_id, answer.host, answer.port, answer.error_code) for answer in answers] == [
        ("a", 1, "127.0.0.1", 9999, ErrorCode.NONE),
        ("b", 1, "127.0.0.1", 9999, ErrorCode.NONE),
    ]
    assert list(core.controller.image.topics) == [topic]


@pytest.mark.parametrize("key_type", [2, 3, -1])
def test_there_is_no_coordinator_of_another_type(core, key_type):
    (answer,) = ask(core, ApiKey.FIND_COORDINATOR, key_type=key_type, coordinator_keys=("a",)).coordinators
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (ErrorCode.INVALID_REQUEST, -1, "", -1)
    assert core.controller.image.topics == {}


@pytest.mark.parametrize("key_type", [0, 102])
def test_no_keys_are_no_coordinators_and_no_topic(core, key_type):
    assert list(ask(core, ApiKey.FIND_COORDINATOR, key_type=key_type, coordinator_keys=()).coordinators) == []
    assert core.controller.image.topics == {}


@pytest.mark.parametrize("is_done", [True, False], ids=["refused", "not yet"])
def test_a_coordinator_whose_topic_cannot_be_made_is_not_available(core, monkeypatch, is_done):
    reply = Reply()
    if is_done:
        reply.complete(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))

    monkeypatch.setattr(core.controller, "ensure_internal_topic", lambda _: reply)
    (answer,) = ask(core, ApiKey.FIND_COORDINATOR, 3, key_type=0, coordinator_keys=("a",)).coordinators
    assert (answer.error_code, answer.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert answer.error_message
