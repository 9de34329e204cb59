"""kafka-python's consumer groups against a real broker over real sockets."""

import pytest

from tests.clients.groups.behaviour import FencedBehaviour, GroupBehaviour, pytest_generate_tests  # noqa: F401  the hook is found here

# kafka-python leaves the sockets of connections that were refused, while a broker is away, to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


class TestKafkaPython(FencedBehaviour, GroupBehaviour):
    make = "kafka-python"
    assignors = ("range", "roundrobin", "sticky", "cooperative-sticky")
