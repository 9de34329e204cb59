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


SHARE_KEY = "g:AQIDBAUGBwgJCgsMDQ4PEA:2"


def test_share_partitions_have_a_coordinator_since_version_6(core):
    def codes(*keys, version=6):
        answers = ask(core, ApiKey.FIND_COORDINATOR, version, key_type=2, coordinator_keys=keys).coordinators
        assert [answer.key for answer in answers] == list(keys)
        return [answer.error_code for answer in answers]

    refused = ["", "g", "g:t:0", f"{SHARE_KEY}:1", f"a:{SHARE_KEY}", SHARE_KEY[1:], SHARE_KEY[:-1], f"{SHARE_KEY[:-1]}x"]
    assert codes(*refused) == [ErrorCode.INVALID_REQUEST] * len(refused)
    assert codes(SHARE_KEY, version=5) == [ErrorCode.INVALID_REQUEST]
    assert core.controller.image.topics == {}
    assert codes(SHARE_KEY, "g", f" {SHARE_KEY}") == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert list(core.controller.image.topics) == ["__share_group_state"]


@pytest.mark.parametrize("key_type", [3, -1])
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
