"""A broker of odradek's and one of Apache Kafka's log in at odradek's controller, and at each other, and replicate."""

import contextlib

import pytest

from tests.campaigns.sasl_clusters.checks import keeps_who_asks, replicates, tells_no_secret
from tests.campaigns.sasl_clusters.cluster import SaslCluster, Security

pytestmark = [pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(180)]


def test_nodes_of_both_kinds_log_in_at_each_other(tmp_path):
    cluster = SaslCluster(tmp_path / "cluster", Security("SASL_SSL", "SCRAM-SHA-512"), is_kafkas_controller=False)
    with contextlib.closing(cluster):
        cluster.begin()
        replicates(cluster)
        keeps_who_asks(cluster)
        tells_no_secret(cluster)
