"""The settings that both brokers are given."""

SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Records have timestamps of 2023, and none goes for its age.
    "log.retention.ms": "-1",
}
