"""``uniform``: members get the same number of partitions, whatever the topic, and keep what they have as far as that allows.

Racks do not count: Kafka's has not looked at them since 4.0.

Source: ``UniformAssignor`` of Apache Kafka 4.3.
"""

from odradek.coordinator.group.assignor.heterogeneous import assign_heterogeneous
from odradek.coordinator.group.assignor.homogeneous import assign_homogeneous
from odradek.coordinator.group.assignor.spec import GroupAssignment, GroupSpec


def assign_uniform(group: GroupSpec) -> GroupAssignment:
    """The assignment."""
    return assign_homogeneous(group) if group.is_homogeneous else assign_heterogeneous(group)
