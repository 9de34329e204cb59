"""Assignors: who of a consumer group gets which partitions (KIP-848). Pure functions of a ``GroupSpec`` (``spec``).

``uniform`` gives all members the same number of partitions and moves as few as it can; ``range`` gives each member a range of
every topic, so that partitions of the same index meet. A third party's stand beside them (``third_party``). What has changed
from one target assignment to the next, and why, ``moves`` tells.

Every order is that of ids: members by theirs, topics by theirs, partitions by index. Kafka takes them out of hash tables, in an
order that is no part of its promise; given them in this order, it assigns the same.
"""
