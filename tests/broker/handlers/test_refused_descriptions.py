"""What Metadata and DescribeTopicPartitions refuse as a whole is answered topic by topic: there is no other place."""

from uuid import UUID

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.handlers.bed import ask, create, make_broker

TOPIC_ID = UUID(int=7)


@pytest.fixture
def broker():
    return make_broker()


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("topic", [{"name": "known", "topic_id": TOPIC_ID}, {"name": None}], ids=["an id", "no name"])
def test_metadata_before_version_12_is_not_asked_by_id(broker, version, topic):
    create(broker, "known")

    response = ask(broker, ApiKey.METADATA, version, topics=[request_topic(name="known"), request_topic(**topic)])

    assert [answer.error_code for answer in response.topics] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_cursor_before_the_first_partition_is_refused_for_each_topic(broker):
    m = messages(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
    cursor = m.classes["request"]["Cursor"](topic_name="a", partition_index=-1)

    response = ask(broker, ApiKey.DESCRIBE_TOPIC_PARTITIONS, topics=[m.TopicRequest(name="a")], cursor=cursor)

    assert [(topic.name, topic.error_code) for topic in response.topics] == [("a", ErrorCode.INVALID_REQUEST)]


def request_topic(**fields):
    return messages(ApiKey.METADATA).MetadataRequestTopic(**fields)
