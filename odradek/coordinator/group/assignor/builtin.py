"""The assignors that are always there, by the names that Kafka gives them."""

from collections.abc import Mapping
from typing import Final

from odradek.coordinator.group.assignor.range_assignor import assign_range
from odradek.coordinator.group.assignor.spec import Assign
from odradek.coordinator.group.assignor.uniform import assign_uniform

ASSIGNORS: Final[Mapping[str, Assign]] = {"uniform": assign_uniform, "range": assign_range}
