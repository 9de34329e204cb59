"""aiokafka against a real broker over a real socket."""

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.clients.behaviour import ClientBehaviour
from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.clients.libraries import Aiokafka

pytestmark = pytest.mark.timeout(2 * CLIENT_TIMEOUT_S)


class TestAiokafka(ClientBehaviour):
    make = Aiokafka

    @pytest.fixture
    def admin(self, library):
        return library.started(AIOKafkaAdminClient)

    def test_a_producer_finds_partitions_that_another_client_adds(self, library, admin, new_topic):
        topic = new_topic(1)
        producer = library.producer()
        assert library.run(producer.client.partitions_for(topic)) == {0}
        library.run(admin.create_partitions({topic: NewPartitions(3)}))
        library.run(producer.client.client.force_metadata_update())
        (told,) = producer.produce(topic, b"x", partition=2)
        assert told.partition == 2

    def test_topics_are_created_described_and_deleted(self, library, admin, new_name):
        topic = new_name()
        response = library.run(admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "1234"})]))
        assert [error[1] for error in response.topic_errors] == [0]
        (described,) = library.run(admin.describe_topics([topic]))
        assert (described["topic"], len(described["partitions"])) == (topic, 2)
        library.run(admin.delete_topics([topic]))
        assert topic not in library.run(admin.list_topics())

    def test_configs_are_described_and_altered(self, library, admin, new_topic):
        topic = new_topic()
        library.run(admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1234"})]))
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": None})]
        (response,) = library.run(admin.describe_configs(asked))
        (resource,) = response.resources
        (entry,) = resource[4]
        assert entry[:2] == ("retention.ms", "1234")

    def test_deleted_records_are_out_of_reach(self, library, admin, new_topic):
        topic = new_topic()
        library.producer().produce(topic, *(b"%d" % number for number in range(5)))
        partition = TopicPartition(topic, 0)
        assert library.run(admin.delete_records({partition: RecordsToDelete(before_offset=3)})) == {partition: 3}
        assert [record.offset for record in library.consumer(topic).take(1)] == [3]

    def test_the_cluster_is_described(self, library, admin):
        cluster = library.run(admin.describe_cluster())
        assert [node["node_id"] for node in cluster["brokers"]] == [1]
