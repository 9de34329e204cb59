"""Kafka Streams, in groups of the streams protocol (KIP-1071) and of the classic one: sums are exact, whoever is killed."""

from contextlib import ExitStack

import pytest

from benchmarks import kafka_jars
from odradek.protocol.api_keys import ApiKey
from tests.clients.streams.application import SETTINGS, Application, wait_until_running
from tests.raw_client import RawClient

pytestmark = [pytest.mark.further, pytest.mark.timeout(400)]


@pytest.mark.parametrize("command", kafka_jars.VERSIONS, indirect=True)
@pytest.mark.parametrize("protocol", ["streams", "classic"])
def test_sums_are_exact_after_kills_of_the_broker_and_of_an_instance(broker_process, new_name, command, tmp_path, protocol):
    with ExitStack() as stack:
        broker = broker_process(settings=SETTINGS)
        name = new_name()
        sums = Application(broker.address, name, command, tmp_path, stack)
        doomed = sums.instance(protocol)
        wait_until_running(doomed)
        sums.order(500)
        other = sums.instance(protocol)
        wait_until_running(doomed, other)
        sums.order(500)
        broker.kill9()
        broker.start()
        sums.order(500)
        doomed.kill9()
        sums.order(500)
        sums.wait_for_sums()
        with RawClient(broker.host, broker.port) as client:
            (group,) = client.call(ApiKey.LIST_GROUPS, 5, types_filter=[protocol]).groups
            assert (group.group_id, group.group_type) == (name, protocol)
        assert other.leave() == 0
