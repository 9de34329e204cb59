"""The broker's internal topics, with the configs that Kafka's coordinators require."""

from odradek.common.config import BrokerConfig
from odradek.controller.metadata.decisions import NewTopic
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC, INTERNAL_TOPICS


def internal_topic(name: str, config: BrokerConfig) -> NewTopic:
    """Return the topic for ``name``, one of INTERNAL_TOPICS, on one broker: one replica, whatever is configured."""
    if name not in INTERNAL_TOPICS:
        raise ValueError(f"{name} is not an internal topic")
    if name == CONSUMER_OFFSETS_TOPIC:
        return NewTopic(
            name=name,
            partition_count=config["offsets.topic.num.partitions"],
            replication_factor=1,
            configs=(
                ("cleanup.policy", "compact"),
                ("segment.bytes", str(config["offsets.topic.segment.bytes"])),
                ("compression.type", "producer"),
            ),
        )
    return NewTopic(
        name=name,
        partition_count=config["transaction.state.log.num.partitions"],
        replication_factor=1,
        configs=(
            ("unclean.leader.election.enable", "false"),
            ("compression.type", "uncompressed"),
            ("cleanup.policy", "compact"),
            ("min.insync.replicas", "1"),
            ("segment.bytes", str(config["transaction.state.log.segment.bytes"])),
        ),
    )


def replicated_internal_topic(name: str, config: BrokerConfig) -> NewTopic:
    """Return the internal topic for a cluster of several brokers."""
    topic = internal_topic(name, config)
    if name == CONSUMER_OFFSETS_TOPIC:
        return topic._replace(replication_factor=config["offsets.topic.replication.factor"])
    in_sync = str(config["transaction.state.log.min.isr"])
    configs = [(key, in_sync if key == "min.insync.replicas" else value) for key, value in topic.configs]
    return topic._replace(replication_factor=config["transaction.state.log.replication.factor"], configs=configs)
