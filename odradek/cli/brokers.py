"""``odradek brokers``: the brokers of any cluster, with the partitions they lead and their disks."""

from typing import Any, Final

import click

from odradek.cli.cluster import Cluster, check
from odradek.cli.feature_levels import METADATA_VERSION, newest_release
from odradek.cli.options import Servers, asks_a_broker, exit_status, show
from odradek.client.admin_apis import API_VERSIONS, DESCRIBE_LOG_DIRS
from odradek.client.apis import METADATA
from odradek.protocol.message_types.api_versions import ApiVersionsRequest
from odradek.protocol.message_types.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.message_types.metadata import MetadataRequest

_COLUMNS: Final = (
    "broker",
    "host",
    "port",
    "rack",
    "controller",
    "kafka_version",
    "leaders",
    "replicas",
    "out_of_sync",
    "log_bytes",
    "disk_free_bytes",
)


@click.command()
@asks_a_broker
def brokers(bootstrap: Servers, as_json: bool) -> int:
    """List the brokers: address, rack, Kafka's version, leaders, replicas, and their disks.

    The version is the newest one whose features the broker has. Disks are those of all log directories.
    """
    with Cluster(bootstrap) as cluster:
        answer = cluster.any.call(METADATA, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        cluster.nodes()
        partitions = [partition for topic in answer.topics for partition in topic.partitions]
        rows = []
        for broker in sorted(answer.brokers, key=lambda one: one.node_id):
            node_id = broker.node_id
            held = [partition for partition in partitions if node_id in partition.replica_nodes]
            rows.append(
                {
                    "broker": node_id,
                    "host": broker.host,
                    "port": broker.port,
                    "rack": broker.rack,
                    "controller": node_id == answer.controller_id,
                    "leaders": sum(partition.leader_id == node_id for partition in held),
                    "replicas": len(held),
                    "out_of_sync": sum(node_id not in partition.isr_nodes for partition in held),
                    **_asked(cluster, node_id),
                }
            )
    show(_COLUMNS, rows, as_json=as_json)
    return exit_status(cluster.unreachable)


def _asked(cluster: Cluster, node_id: int) -> dict[str, Any]:
    """Return what only the broker itself knows; None if it does not answer, or does not tell."""
    unknown = dict.fromkeys(("kafka_version", "log_bytes", "disk_free_bytes"))
    return cluster.tried(lambda: {**unknown, **_version(cluster, node_id), **_disks(cluster, node_id)}) or unknown


def _version(cluster: Cluster, node_id: int) -> dict[str, Any]:
    connection = cluster.node(node_id)
    if not connection.serves(API_VERSIONS):
        return {}
    # A second ApiVersions needs a client's name as the first one does.
    request = ApiVersionsRequest(client_software_name="odradek", client_software_version="cli")
    features = {one.name: one.max_version for one in connection.call(API_VERSIONS, request).supported_features}
    level = features.get(METADATA_VERSION)
    return {"kafka_version": None if level is None else newest_release(level)}


def _disks(cluster: Cluster, node_id: int) -> dict[str, Any]:
    connection = cluster.node(node_id)
    answer = connection.call(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None))
    check(f"disks of broker {node_id}", answer.error_code)
    sizes = [one.partition_size for disk in answer.results for topic in disk.topics for one in topic.partitions]
    free = [disk.usable_bytes for disk in answer.results if disk.usable_bytes >= 0]
    return {"log_bytes": sum(sizes), "disk_free_bytes": sum(free) if free else None}
