"""Streams groups (KIP-1071) in the group coordinator: the members of an application, its topology, and its tasks.

The first member brings the topology. It consists of subtopologies, and a subtopology has a task for each partition of its largest
source topic. All state is records, and only ``replay`` changes it (``group``). The three epochs are those of consumer groups.

    topology          the topology, as its record has it
    internal_topics   what the topology needs in the cluster: the numbers of partitions, and the topics that are still missing
    heartbeat         a member joins or stays; ``target`` computes the target assignment, ``reconciliation`` moves the member
    leave             a member leaves, or is removed
    endpoints         the partitions of each instance, for interactive queries
    describe          StreamsGroupDescribe

Left out: the assignment of warm-up tasks, which Kafka 4.4 does not do either, and plugins for topology descriptions (KIP-1331).
"""
