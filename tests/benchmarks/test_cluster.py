"""The benchmark of clusters: what it runs, its figures, and a cluster of odradek's as it is measured."""

from contextlib import closing
from pathlib import Path

from benchmarks.cluster import failover, start_up
from benchmarks.cluster.__main__ import NAMES, REPLICATED, parse_arguments
from benchmarks.cluster.clusters import OdradekCluster
from benchmarks.scenarios import Load
from odradek.cli.cluster import Cluster
from odradek.cli.options import parse_servers
from tests.broker_process import STOP_TIMEOUT_S
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.cases import each_case
from tests.cli.local_cluster.cluster_process import is_alive


@each_case("load", REPLICATED, ids=lambda load: load.name)
def test_the_loads_of_a_cluster_have_three_replicas(load: Load):
    assert "-replicas=3" in load.arguments
    assert load.title.endswith("3 replicas")
    assert load.fill is None or "-replicas=3" in load.fill


def test_what_a_cluster_does_is_measured_as_with_one_broker():
    throughput_and_latency = {"produce-100", "produce-1k", "latency", "latency-2000"}
    coordinators = {"txn-1", "txn-16", "txn-offsets-1", "txn-offsets-16", "commits", "group-50"}
    shares = {"share-implicit-1", "share-explicit-16"}
    assert set(NAMES) == {"start", "failover", "latency-idle", *throughput_and_latency, *coordinators, *shares}


def test_only_the_named_benchmarks_and_clusters_are_chosen():
    chosen = parse_arguments(["--only", "start", "--clusters", "odradek"])
    assert (chosen.only, chosen.clusters) == (["start"], ["odradek"])


def test_a_start_is_to_take_a_sixth_of_kafkas_time_and_memory():
    starts = {
        "odradek": [start_up.Start(second, 100.0, 200.0, 0.01) for second in (1.0, 0.5, 9.0)],
        "kafka": [start_up.Start(6.0, 601.0, 700.0, 0.1)],
    }
    seconds, pss, *_ = start_up.figures(starts)
    assert (seconds.ratio, seconds.reached, pss.reached) == (1 / 6, True, True)


def test_a_failover_is_told_by_its_median_and_is_to_be_no_slower():
    figures = failover.figures({"produce": {"odradek": [2.0, 9.0, 1.0], "kafka": [2.0]}, "commit": {"odradek": [1.0]}})
    assert [(figure.ratio, figure.reached) for figure in figures] == [(1.0, True), (None, None)]


def brokers_of(address: str) -> set[int]:
    with Cluster(parse_servers(address)) as cluster:
        return {node.node_id for node in cluster.nodes()}


def test_a_measured_cluster_serves_where_it_said_before_and_leaves_nothing_behind(tmp_path: Path):
    with closing(OdradekCluster(tmp_path / "cluster", failover.SETTINGS)) as cluster:
        cluster.spawn()
        assert cluster._process.stdout.readline() == f"odradek cluster ready on {cluster.address}\n"
        assert brokers_of(cluster.address) == {1, 2, 3} == set(cluster.broker_pids())
        pids = cluster.pids
        assert len(set(pids)) == 5
    until(lambda: not any(map(is_alive, pids)), STOP_TIMEOUT_S)
    assert not (tmp_path / "cluster").exists()
