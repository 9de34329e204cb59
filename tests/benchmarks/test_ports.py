import random
import socket
import sys

import pytest

from benchmarks.ports import free_ports


def test_ports_differ_whatever_seed_a_test_has():
    found = set()
    for _ in range(3):
        random.seed(1)
        found.update(free_ports(5))
    assert len(found) == 15


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port cannot be reserved")
def test_a_broker_may_listen_on_its_port_again_and_again_and_nobody_else_gets_it():
    [port] = free_ports(1)
    for _ in range(2):
        socket.create_server(("127.0.0.1", port)).close()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
