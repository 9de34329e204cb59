"""Ports that are a cluster's own before, between and after its brokers."""

import socket
import sys

import pytest

from odradek.cli.local_cluster.node import PortTaken, ReservedPorts


def test_free_ports_differ():
    with ReservedPorts([0, 0, 0]) as ports:
        assert len(set(ports.numbers)) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port cannot be reserved")
def test_a_broker_may_listen_on_a_reserved_port_again_and_again_and_nobody_else_may_have_it():
    with ReservedPorts([0]) as ports:
        [port] = ports.numbers
        for _ in range(2):
            socket.create_server(("127.0.0.1", port)).close()
        with socket.socket() as other, pytest.raises(OSError):
            other.bind(("127.0.0.1", port))
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))


def test_a_port_on_which_somebody_listens_is_refused_and_none_stays_reserved():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with ReservedPorts([0]) as ports:
            [free] = ports.numbers
        with pytest.raises(PortTaken, match=f"127.0.0.1:{port}"):
            ReservedPorts([free, port])
        with socket.socket() as other:
            other.bind(("127.0.0.1", free))
