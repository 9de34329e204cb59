"""Clusters of stand-ins and of brokers, ended with the test."""

from contextlib import ExitStack, closing

import pytest

from tests.cli.local_cluster.cluster_process import STAND_IN, ClusterProcess


@pytest.fixture
def start_cluster(tmp_path):
    """``start_cluster("--brokers", 2, data_dir=...)``: an ``odradek cluster`` of real nodes."""
    with ExitStack() as stack:
        yield lambda *arguments, **others: stack.enter_context(closing(ClusterProcess(tmp_path, *arguments, **others)))


@pytest.fixture
def stand_ins(start_cluster):
    """The same, with nodes that only stand in."""
    return lambda *arguments, **others: start_cluster(*arguments, program=(STAND_IN,), **others)
