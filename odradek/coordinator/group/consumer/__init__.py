"""The consumer group protocol (KIP-848): ConsumerGroupHeartbeat, and groups whose assignment the coordinator computes.

All state is records, and only ``replay`` changes it (``group``). Three epochs count up:

    group epoch         raised when a subscription, the members or the topics change
    assignment epoch    the group epoch for which the target assignment was computed
    member epoch        the assignment epoch that the member has reached

A heartbeat (``heartbeat``) adds or updates a member, raises the group's epoch, computes the target assignment and brings this one
member nearer to its target (both in ``member_step``). Other members follow in their own heartbeats. Sessions and
revocation timeouts (``groups``) are not records. They restart with a load.

Members of the classic protocol in such a group, and the conversion of groups, are in ``group.migration``.
"""
