"""Assignors: assign partitions to the members of a consumer group (KIP-848). Pure functions of a ``GroupSpec`` (``spec``).

``uniform`` gives all members the same number of partitions and moves as few as it can. ``range`` gives each member a range of
every topic, so that one member gets partitions of the same index. Third-party assignors are wrapped by ``spec``.

Members and topics are always ordered by id, partitions by index. Kafka iterates over hash tables, in an order it does not
promise. Given members and topics in our order, it computes the same assignment.
"""
