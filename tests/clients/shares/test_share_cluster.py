"""A share group at `odradek cluster` with three brokers, which are killed in turn: leaders and share coordinators move."""

from contextlib import closing

import pytest

from tests.cli.local_cluster.cluster_process import ClusterProcess
from tests.clients.shares.share_group import SETTINGS
from tests.clients.shares.test_share_groups import TOGETHER

# Clients are compiled here, too, if no other test has done it.
pytestmark = [pytest.mark.xdist_group("three brokers"), pytest.mark.timeout(400)]

CLUSTER_SETTINGS = SETTINGS | {"broker.session.timeout.ms": 2_000, "broker.heartbeat.interval.ms": 500}
BROKERS = (1, 2, 3)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    scratch = tmp_path_factory.mktemp("share-cluster")
    settings = [word for key, value in CLUSTER_SETTINGS.items() for word in ("--set", f"{key}={value}")]
    with closing(ClusterProcess(scratch, "--brokers", 3, *settings, data_dir=scratch / "data")) as cluster:
        yield cluster.wait_ready()


@pytest.mark.parametrize("makes", TOGETHER)
def test_each_record_ends_once_though_brokers_are_killed_in_turn(cluster, group_of, new_name, program_of, makes):
    commands = [program_of(make) for make in makes]
    group = group_of(",".join(cluster.addresses), new_name(), replication_factor=3)
    for command in commands:
        group.member(command)
    group.fill(300)
    for broker in BROKERS:
        status, _, said = cluster.ask("kill", broker)
        assert status == 0, said
        group.fill(300)
        status, _, said = cluster.ask("start", broker)
        assert status == 0, said
        group.fill(300)
    group.wait_until_worked()
    group.check()
