"""The programs of the members, and a broker with short intervals."""

from contextlib import ExitStack

import pytest

from tests.broker_process import BrokerProcess
from tests.clients.shares.share_group import SETTINGS, ShareGroup, program


@pytest.fixture(scope="session")
def program_of(tmp_path_factory):
    """The command line of a member of each make, built once."""
    built = {}

    def build(make):
        if make not in built:
            built[make] = program(make, tmp_path_factory.mktemp(make))
        return built[make]

    return build


@pytest.fixture(scope="module")
def module_broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("shares") / "broker", settings=SETTINGS) as broker:
        yield broker


@pytest.fixture
def group_of():
    """Makes groups, whose members are killed at the end."""
    with ExitStack() as stack:
        yield lambda addresses, name, **options: ShareGroup(addresses, name, stack, **options)
