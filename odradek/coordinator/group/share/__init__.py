"""Share groups (KIP-932) in the group coordinator: members, target assignments, and the life of the share partitions' state.

All state is records, and only ``replay`` changes it (``group``). The three epochs are those of consumer groups. A member takes
its target at once: partitions are shared, so nobody has to give them up first.

Before a partition can be assigned, the share coordinator must have its state. ``state_partitions`` has the sets that track this:

    initializing    a heartbeat or AlterShareGroupOffsets asked for the state of these partitions
    initialized     the share coordinator has it: they may be assigned
    deleting        DeleteGroups or DeleteShareGroupOffsets asked the share coordinator to drop the state of these topics

``broker/coordination`` asks the share coordinator, and writes the outcome as an operation of its own.
"""
