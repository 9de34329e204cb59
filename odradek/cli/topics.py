"""``odradek topics``: list, describe, create and delete, on any broker. The other two commands are in ``topic_changes``."""

from typing import Any

import click

from odradek.cli.cluster import Cluster, Refused, known_topics, unknown_topic
from odradek.cli.options import (
    Servers,
    asks_a_broker,
    command_group,
    exit_status,
    key_and_value,
    render,
    row_of,
    show,
    show_json,
)
from odradek.cli.topic_changes import alter, delete_records
from odradek.client.admin_apis import CREATE_TOPICS, DELETE_TOPICS, DESCRIBE_CONFIGS
from odradek.client.apis import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.message_types.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.message_types.metadata import MetadataResponseTopic
from odradek.protocol.texts import uuid_text

_TOPIC_RESOURCE = 2
_SET_ON_TOPIC = 1
_BROKERS_CHOICE = -1
_TIMEOUT_MS = 30_000
_CREATED = ("topic", "partitions", "replicas")
_LISTED = ("topic", "topic_id", "partitions", "replicas", "internal")
_PARTITION = ("topic", "partition", "leader", "leader_epoch", "replicas", "isr", "log_start_offset", "log_end_offset")
_CONFIG = ("topic", "config", "value")


@command_group()
def topics() -> None:
    """Manage topics of any Kafka broker."""


topics.add_command(alter)
topics.add_command(delete_records)


@topics.command("list")
@asks_a_broker
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics, such as __consumer_offsets.")
def list_topics(bootstrap: Servers, as_json: bool, exclude_internal: bool) -> int:
    """List every topic."""
    with Cluster(bootstrap) as cluster:
        found = cluster.metadata(None)
    shown = [_listed(topic) for topic in found if not (exclude_internal and topic.is_internal)]
    show(_LISTED, shown, as_json=as_json)
    return 0


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@asks_a_broker
def describe(names: tuple[str, ...], bootstrap: Servers, as_json: bool) -> int:
    """Describe partitions with leaders, replicas and offsets, and the topic's own configs."""
    with Cluster(bootstrap) as cluster:
        found, refusals = known_topics(cluster, names)
        partitions = _described_partitions(cluster, found)
        configs, unread = _configs(cluster, [str(topic.name) for topic in found])
    failures = [*refusals, *unread, *cluster.unreachable]
    if as_json:
        show_json([_as_document(_listed(topic), partitions, configs) for topic in found])
        return exit_status(failures)
    if found:
        click.echo(render(_PARTITION, partitions), nl=False)
    if configs:
        click.echo()
        click.echo(render(_CONFIG, configs), nl=False)
    return exit_status(failures)


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@asks_a_broker
@click.option("--partitions", type=click.IntRange(1), help="Number of partitions.  [default: the broker's]")
@click.option("--replication-factor", type=click.IntRange(1), help="Replicas of each partition.  [default: the broker's]")
@click.option("--config", "configs", metavar="KEY=VALUE", multiple=True, callback=key_and_value, help="One config; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Do not fail if a topic exists already.")
def create(
    names: tuple[str, ...],
    bootstrap: Servers,
    as_json: bool,
    partitions: int | None,
    replication_factor: int | None,
    configs: dict[str, str],
    if_not_exists: bool,
) -> int:
    """Create topics, all with the same settings."""
    asked = [
        CreatableTopic(
            name=name,
            num_partitions=partitions or _BROKERS_CHOICE,
            replication_factor=replication_factor or _BROKERS_CHOICE,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        for name in names
    ]
    with Cluster(bootstrap) as cluster:
        answer = cluster.controller().call(CREATE_TOPICS, CreateTopicsRequest(topics=asked, timeout_ms=_TIMEOUT_MS))
    created, refusals = [], []
    for topic in answer.topics:
        if not topic.error_code:
            # Versions before 5 lack the broker's choice.
            made = _known_count(topic.num_partitions, partitions), _known_count(topic.replication_factor, replication_factor)
            created.append(row_of(_CREATED, str(topic.name), *made))
        elif not (if_not_exists and topic.error_code == ErrorCode.TOPIC_ALREADY_EXISTS):
            refusals.append(Refused(str(topic.name), topic.error_code, topic.error_message))
    if created or as_json:
        show(_CREATED, created, as_json=as_json)
    return exit_status(refusals)


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@asks_a_broker
@click.option("--if-exists", is_flag=True, help="Do not fail if a topic does not exist.")
def delete(names: tuple[str, ...], bootstrap: Servers, as_json: bool, if_exists: bool) -> int:
    """Delete topics and all their records."""
    asked = [DeleteTopicState(name=name) for name in names]
    with Cluster(bootstrap) as cluster:
        answer = cluster.controller().call(DELETE_TOPICS, DeleteTopicsRequest(topics=asked, timeout_ms=_TIMEOUT_MS))
        deleted, refusals = [], []
        for topic in answer.responses:
            if not topic.error_code:
                deleted.append({"topic": str(topic.name)})
            elif not (if_exists and topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                refusals.append(unknown_topic(cluster, str(topic.name), topic.error_code, topic.error_message))
    if deleted or as_json:
        show(("topic",), deleted, as_json=as_json)
    return exit_status(refusals)


def _known_count(told: int, otherwise: int | None) -> int | None:
    """Return a number of a response. It is -1 if the broker does not know it, or if the version has no field for it."""
    return told if told >= 0 else otherwise


def _listed(topic: MetadataResponseTopic) -> dict[str, Any]:
    return {
        "topic": str(topic.name),
        "topic_id": None if topic.topic_id is None else uuid_text(topic.topic_id),
        "partitions": len(topic.partitions),
        "replicas": max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
        "internal": topic.is_internal,
    }


def _described_partitions(cluster: Cluster, found: list[MetadataResponseTopic]) -> list[dict[str, Any]]:
    keys = [(str(topic.name), int(partition.partition_index)) for topic in found for partition in topic.partitions]
    starts = cluster.list_offsets(dict.fromkeys(keys, EARLIEST_TIMESTAMP))
    ends = cluster.list_offsets(dict.fromkeys(keys, LATEST_TIMESTAMP))
    rows = []
    for topic in found:
        for partition in sorted(topic.partitions, key=lambda one: int(one.partition_index)):
            key = str(topic.name), int(partition.partition_index)
            values = (
                *key,
                int(partition.leader_id) if partition.leader_id >= 0 else None,
                _known_count(partition.leader_epoch, None),
                list(map(int, partition.replica_nodes)),
                list(map(int, partition.isr_nodes)),
                *(None if isinstance(offset, Refused) else offset for offset in (starts[key], ends[key])),
            )
            rows.append(row_of(_PARTITION, *values))
    return rows


def _configs(cluster: Cluster, names: list[str]) -> tuple[list[dict[str, Any]], list[Refused]]:
    """Return the configs that are set on the topics themselves."""
    if not names:
        return [], []
    asked = [
        DescribeConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=None) for name in names
    ]
    rows: list[dict[str, Any]] = []
    refusals = []
    for result in cluster.any.call(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=asked)).results:
        if result.error_code:
            refusals.append(Refused(f"configs of {result.resource_name}", result.error_code, result.error_message))
        rows += [
            row_of(_CONFIG, result.resource_name, config.name, config.value)
            for config in result.configs
            if config.config_source == _SET_ON_TOPIC
        ]
    return rows, refusals


def _as_document(listed: dict[str, Any], partitions: list[dict[str, Any]], configs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one topic with its partitions and configs, for JSON."""
    mine = [{key: value for key, value in row.items() if key != "topic"} for row in partitions if row["topic"] == listed["topic"]]
    own = {row["config"]: row["value"] for row in configs if row["topic"] == listed["topic"]}
    return {**listed, "partitions": mine, "configs": own}
