"""A client that has not authenticated, with rights to some topics and a group, at a broker with an authorizer."""

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.client.api import Api
from odradek.client.blocking import BlockingClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.create_acls import CreateAclsRequest
from tests.broker.api.acl_requests import creation
from tests.broker_process import BrokerProcess

AUTHORIZER = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:admin"}
RIGHTS = ("WRITE TOPIC mine", "READ TOPIC mine", "READ GROUP g*", "IDEMPOTENT_WRITE CLUSTER kafka-cluster")
TIMEOUT_S = 20


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Topics and rights are made before the client is nobody special any more."""
    broker = BrokerProcess(tmp_path_factory.mktemp("rights"), settings=AUTHORIZER | {"super.users": "User:ANONYMOUS"})
    with broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        for made in admin.create_topics([NewTopic("mine", 1), NewTopic("theirs", 1)]).values():
            made.result(TIMEOUT_S)
        client = BlockingClient(broker.host, broker.port, "test", TIMEOUT_S)
        client.call(Api(ApiKey.CREATE_ACLS), CreateAclsRequest([creation(f"allow User:ANONYMOUS {text}") for text in RIGHTS]))
        client.close()
    broker.settings |= AUTHORIZER
    with broker:
        yield broker.address


def produced(servers, topic):
    """The error with which a record is delivered, None where there is none."""
    errors = []
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "message.timeout.ms": TIMEOUT_S * 1000})
    producer.produce(topic, b"v", callback=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    return errors[0]


def consumed(servers, group, topic):
    """The value of the first record, or the code of the first error."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        return message.error().code() if message.error() else message.value()
    finally:
        consumer.close()


def test_it_produces_and_consumes_where_it_may(servers):
    assert produced(servers, "mine") is None
    assert consumed(servers, "g1", "mine") == b"v"


def test_it_is_told_where_it_may_not(servers):
    assert produced(servers, "theirs").code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert consumed(servers, "g1", "theirs") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert consumed(servers, "other", "mine") == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_it_sees_what_it_may(servers):
    assert [*AdminClient({"bootstrap.servers": servers}).list_topics(timeout=TIMEOUT_S).topics] == ["mine"]
