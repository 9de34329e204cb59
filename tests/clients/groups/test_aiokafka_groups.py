"""aiokafka's consumer groups against a real broker over real sockets."""

from tests.clients.groups.behaviour import GroupBehaviour, pytest_generate_tests  # noqa: F401  the hook is found here


class TestAiokafka(GroupBehaviour):
    make = "aiokafka"
    assignors = ("range", "roundrobin", "sticky")
    commits = ("sync", "auto")
