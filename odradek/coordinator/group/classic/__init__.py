"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A group has two parts. Its *stored* state is the last generation that got an assignment from its leader, or that became empty. It
is a ``GroupMetadataValue``; only ``replay`` changes it, and a restarted broker loads it. The *live* state in ``ClassicGroup``
lies on top: waiting requests, late members, the generation being formed. Decisions on requests change it. It is lost with the
broker, and clients then join or heartbeat again. Kafka separates the two in the same way.

    join ──> PreparingRebalance ──> CompletingRebalance ──> leader syncs: stored ──> Stable

A decision never completes replies itself. It collects responses (``decision``), which are sent once the group is consistent again
and the decision's records are committed.

The conversion of classic groups into consumer groups and back (KIP-848) is in ``group.migration``.
"""
