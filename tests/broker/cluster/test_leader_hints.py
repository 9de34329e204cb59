"""Who comes to a wrong leader is told of the right one, in the versions that have a place for it."""

import pytest

from odradek.broker.cluster.leader_hints import LeaderHints
from odradek.common.context import NO_RESPONSE, RequestContext, Session
from odradek.controller.metadata.cluster_view import Cluster
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import fetch, produce
from tests.broker.cluster.images import image_of, topic_id_of

ERRORS = [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
NOBODY = -1


@pytest.fixture
def hints():
    image = image_of({"t": [1, 2, 3, 2], "u": [NOBODY]}, brokers=(1, 2, 3))
    return LeaderHints(image, Cluster(image, 1))


def released(hints, key, version, response, listener="PLAINTEXT"):
    context = RequestContext(key, version, 1, "c", Session(listener, ("127.0.0.1", 1)))
    assert hints.admit(context, object()) is None
    return hints.release(context, response)


def produced(errors=ERRORS, name="t", topic_id=None):
    partitions = [produce.PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate(errors)]
    return produce.ProduceResponse(
        responses=[produce.TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=partitions)]
    )


def fetched(errors=ERRORS, name="t", topic_id=None):
    partitions = [fetch.PartitionData(partition_index=index, error_code=code) for index, code in enumerate(errors)]
    return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=partitions)])


def leaders(partitions):
    return [tuple(each.current_leader) for each in partitions]


TOLD = [(-1, -1), (2, 1), (3, 1), (-1, -1)]
ENDPOINTS = [(2, "broker-2", 9002, "rack-2"), (3, "broker-3", 9003, "rack-3")]


@pytest.mark.parametrize(("version", "name", "topic_id"), [(10, "t", None), (13, "", topic_id_of(1))])
def test_a_producer_is_told_of_leaders_and_where_they_are(hints, version, name, topic_id):
    told = released(hints, ApiKey.PRODUCE, version, produced(name=name, topic_id=topic_id))
    assert leaders(told.responses[0].partition_responses) == TOLD
    assert list(map(tuple, told.node_endpoints)) == ENDPOINTS


@pytest.mark.parametrize(("name", "topic_id"), [("t", None), ("", topic_id_of(1))])
def test_a_reader_is_told_the_same(hints, name, topic_id):
    told = released(hints, ApiKey.FETCH, 16, fetched(name=name, topic_id=topic_id))
    assert leaders(told.responses[0].partitions) == TOLD
    assert list(map(tuple, told.node_endpoints)) == ENDPOINTS


@pytest.mark.parametrize(
    ("key", "version", "response"),
    [
        (ApiKey.PRODUCE, 9, produced()),
        (ApiKey.FETCH, 15, fetched()),
        (ApiKey.PRODUCE, 12, produced([ErrorCode.NONE])),
        (ApiKey.FETCH, 17, fetched([ErrorCode.OFFSET_OUT_OF_RANGE])),
        (ApiKey.FETCH, 17, fetched(name="gone")),
        (ApiKey.PRODUCE, 12, NO_RESPONSE),
    ],
)
def test_any_other_answer_is_left_alone(hints, key, version, response):
    assert released(hints, key, version, response) is response


def test_a_partition_without_a_leader_is_told_as_such_and_without_a_place(hints):
    told = released(hints, ApiKey.FETCH, 17, fetched([ErrorCode.NOT_LEADER_OR_FOLLOWER], name="u"))
    assert (leaders(told.responses[0].partitions), list(told.node_endpoints)) == ([(NOBODY, 1)], [])


def test_a_leader_that_lacks_the_clients_listener_has_no_place(hints):
    told = released(hints, ApiKey.PRODUCE, 12, produced(), listener="OTHER")
    assert (leaders(told.responses[0].partition_responses), list(told.node_endpoints)) == (TOLD, [])
