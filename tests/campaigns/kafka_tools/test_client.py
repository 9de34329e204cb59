"""Apache Kafka's own broker understands our client, and our client it."""

import pytest

from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns
from tests.client import conversation

# One process: Kafka starts once, and its jars are fetched once where they are not in the cache.
pytestmark = [pytest.mark.xdist_group("kafka-tools"), pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    """(host, port) of a node of Apache Kafka."""
    with KafkaRuns(tmp_path_factory.mktemp("kafka")).serving("kafka", {}) as run:
        host, port = run.address.split(":")
        yield host, int(port)


async def test_what_is_written_is_read(kafka):
    await conversation.writes_and_reads(*kafka, "written")


async def test_a_fetch_waits_while_another_connection_writes(kafka):
    await conversation.waits_on_a_connection_of_its_own(*kafka, "waiting")


async def test_pipelined_requests_are_answered_each_with_its_own_response(kafka):
    await conversation.pipelines(*kafka, "pipelined")
