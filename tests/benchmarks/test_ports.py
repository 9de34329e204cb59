import socket
import sys

import pytest

from benchmarks.ports import free_ports


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port cannot be reserved")
def test_ports_belong_to_whoever_asked_until_the_process_ends():
    ports = [port for _ in range(3) for port in free_ports(2)]
    assert len(set(ports)) == 6
    for port in ports:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
