"""librdkafka's consumer groups, by way of confluent-kafka, against a real broker over real sockets."""

from tests.clients.groups.behaviour import FencedBehaviour, GroupBehaviour, pytest_generate_tests  # noqa: F401  the hook is found here


class TestLibrdkafka(FencedBehaviour, GroupBehaviour):
    make = "librdkafka"
    assignors = ("range", "roundrobin", "cooperative-sticky")
