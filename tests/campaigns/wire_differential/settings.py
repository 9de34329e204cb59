"""The settings that both brokers are given."""

SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Else the time between two joins would tell what the second is given.
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    # Records have timestamps of 2023, and none goes for its age.
    "log.retention.ms": "-1",
}
# What odradek does not have: with it, a join is answered before its assignment is computed.
OF_KAFKA = {f"group.{kind}.assignor.offload.enable": "false" for kind in ("consumer", "share", "streams")}
