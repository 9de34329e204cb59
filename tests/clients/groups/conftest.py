"""A broker that lets sessions be short, groups with members of any make, and what must hold of every group at its end."""

from __future__ import annotations

import gc
import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.broker_process import BrokerProcess
from tests.clients.groups.group import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHORT_SESSIONS = {"group.min.session.timeout.ms": 500}


@pytest.fixture(scope="module")
def module_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    name = request.module.__name__.rpartition(".")[2]
    with BrokerProcess(tmp_path_factory.mktemp(name) / "broker", settings=SHORT_SESSIONS) as broker:
        yield broker


@pytest.fixture
def group_of(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[..., Group]]:
    """Makes groups: ``group_of(broker, topic, partitions)``; members are stopped, and the groups checked, at the end."""
    # Errors in captured records would keep alive what kafka-python leaves to the garbage collector.
    caplog.set_level(logging.CRITICAL, "kafka")
    groups = []
    with ExitStack() as stack:

        def make(broker: BrokerProcess, topic: str, partitions: int) -> Group:
            groups.append(Group(broker, topic, partitions, stack))
            return groups[-1]

        yield make
        for group in groups:
            group.begin_to_stop()
    # What clients leave unclosed is found here, where the test says which of it is to be passed over.
    gc.collect()
    for group in groups:
        group.check()


@pytest.fixture
def group(broker: BrokerProcess, new_topic: Callable[..., str], group_of: Callable[..., Group]) -> Group:
    """A group on a topic of four partitions, on the module's broker."""
    return group_of(broker, new_topic(4), 4)


@pytest.fixture
def mortal_group(broker_process: Callable[..., BrokerProcess], group_of: Callable[..., Group]) -> Group:
    """The same on a broker of its own, which the test may kill and must leave running."""
    broker = broker_process(settings={**SHORT_SESSIONS, "num.partitions": 4})
    group = group_of(broker, "processed", 4)
    group.fill(25)
    return group
