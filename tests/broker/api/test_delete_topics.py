from uuid import UUID

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, create, make_broker

M = messages(ApiKey.DELETE_TOPICS)
NOBODYS_ID = UUID(int=77)


def delete(broker, *states, version=None):
    responses = ask(
        broker,
        ApiKey.DELETE_TOPICS,
        version,
        topics=[M.DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in states],
    ).responses
    return [(response.name, response.topic_id, response.error_code) for response in responses]


def test_a_topic_is_deleted_by_name(core):
    topic = create(core, "t")
    assert delete(core, ("t", None)) == [("t", topic.topic_id, ErrorCode.NONE)]
    assert core.controller.image.topics == {}


def test_a_topic_is_deleted_by_id(core):
    topic = create(core, "t")
    assert delete(core, (None, topic.topic_id)) == [("t", topic.topic_id, ErrorCode.NONE)]
    assert core.controller.image.topics == {}


def test_an_internal_topic_may_be_deleted(core):
    topic = core.controller.ensure_internal_topic("__transaction_state").response
    assert delete(core, ("__transaction_state", None)) == [(topic.name, topic.topic_id, ErrorCode.NONE)]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([("nope", None)], ("nope", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
        ([(None, NOBODYS_ID)], (None, NOBODYS_ID, ErrorCode.UNKNOWN_TOPIC_ID)),
        ([(None, None)], (None, None, ErrorCode.INVALID_REQUEST)),
        ([("t", NOBODYS_ID)], ("t", NOBODYS_ID, ErrorCode.INVALID_REQUEST)),
        ([("t", None), ("t", None)], ("t", None, ErrorCode.INVALID_REQUEST)),
        ([(None, NOBODYS_ID)] * 2, (None, NOBODYS_ID, ErrorCode.INVALID_REQUEST)),
    ],
)
def test_what_cannot_be_deleted_is_told_and_nothing_goes(core, states, expected):
    create(core, "t")
    assert delete(core, *states) == [expected]
    assert list(core.controller.image.topics) == ["t"]


def test_a_name_that_means_an_id_also_given_deletes_neither(core):
    topic = create(core, "t")
    assert delete(core, (None, topic.topic_id), ("t", None)) == [("t", topic.topic_id, ErrorCode.INVALID_REQUEST)]
    assert list(core.controller.image.topics) == ["t"]


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_nothing_is_deleted_where_deletion_is_disabled(version, code):
    broker = make_broker(delete_topic_enable="false")
    create(broker, "t")
    assert delete(broker, ("t", None), version=version) == [("t", None, code)]
    assert list(broker.controller.image.topics) == ["t"]
