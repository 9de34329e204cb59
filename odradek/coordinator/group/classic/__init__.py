"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Of a group two things are kept. What is *stored* is the last generation that a leader gave an assignment, or that became empty:
a ``GroupMetadataValue``, which only ``replay`` changes, and which a restarted broker has back. What is *live* lies on top of it
in ``ClassicGroup``: who waits for what, who is late, the generation that is being formed. It changes as requests are decided
on, and is lost with the broker, whose clients then join or heartbeat again. Kafka keeps the two apart in the same way.

    join ──> PreparingRebalance ──> CompletingRebalance ──> leader syncs: stored ──> Stable

A decision never calls who waits: it collects responses (``decision``), which leave once the group is consistent again and what
it had written is committed.

The conversion of classic groups into consumer groups and back (KIP-848) is in ``group.migration``.
"""
