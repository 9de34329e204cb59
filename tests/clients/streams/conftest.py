"""The program of an application's instances, compiled once for each version of Kafka Streams."""

import pytest

from benchmarks import kafka_jars
from tests.clients.streams.application import compiled


@pytest.fixture(scope="session")
def command(tmp_path_factory, request):
    """The first words of an instance's command line, with the newest version or the one that a test names."""
    return compiled(tmp_path_factory.mktemp("sums"), getattr(request, "param", kafka_jars.VERSION))
