"""The consumer group protocol (KIP-848): ConsumerGroupHeartbeat, and groups whose assignment the coordinator computes.

All state is records, and only ``replay`` changes it (``group``). Three epochs count up:

    group epoch         a subscription, the members or the topics have changed
    assignment epoch    the group epoch for which the target assignment was computed
    member epoch        the assignment epoch to which the member has come

A heartbeat (``heartbeat``) takes a member in or updates it, raises the group's epoch, computes the target assignment
(``target_assignment``), and brings this one member nearer to its target (``current_assignment``). Other members follow in their
own heartbeats. What is not a record: sessions and the timeouts of revocations (``sessions``), which begin anew with a load.

Members of the classic protocol in such a group, and the conversion of groups, are in ``group.migration``.
"""
