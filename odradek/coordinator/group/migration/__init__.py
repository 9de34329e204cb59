"""Migration of groups from the classic protocol to the consumer protocol and back, while their members keep going.

    upgrade      a member of the consumer protocol joins a classic group of consumers, which becomes a consumer group
    in between   classic members stay: their JoinGroup, SyncGroup, Heartbeat and LeaveGroup are translated
    downgrade    the last member of the consumer protocol leaves, and the remaining classic members form a classic group again

``group.consumer.migration.policy`` permits upgrades, downgrades, both or neither. Each conversion writes one batch: tombstones of
the old group and records of the new one. Offsets stay, as they belong to the group's id. An empty group of either kind gives way
to the other, whatever the policy.

To a classic member its member epoch is the generation, and there is no leader. Where a member of the consumer protocol would get
a new assignment, it is told to join again (REBALANCE_IN_PROGRESS). It reports its owned partitions in its subscription, since
version 1 of that format.
"""
