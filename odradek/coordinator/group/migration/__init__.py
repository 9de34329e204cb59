"""A group's way from the classic protocol to the consumer protocol and back, while its members go on.

    upgrade      a member of the consumer protocol joins a classic group of consumers, which becomes a consumer group
    in between   classic members stay in it: their JoinGroup, SyncGroup, Heartbeat and LeaveGroup are translated
    downgrade    the last member of the consumer protocol goes, and classic members are left: they are a classic group again

``group.consumer.migration.policy`` permits the one, the other, both or neither. Both conversions are records in one batch: the
tombstones of what the group was, and the records of what it is from then on. Offsets stay, since they belong to the group's id.
An empty group of either kind gives way to the other without asking for the policy.

A classic member has its member epoch for a generation, and no leader. It is told to join again (REBALANCE_IN_PROGRESS) where a
member of the consumer protocol would be told its assignment. What it owns stands in its subscription, since version 1 of that.
"""
