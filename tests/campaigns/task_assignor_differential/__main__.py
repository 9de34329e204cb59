"""Runs the campaign: ``python -m tests.campaigns.task_assignor_differential --inputs 20000``."""

import sys

from odradek.coordinator.group.assignor import sticky_task_assignor
from tests.campaigns.assignor_differential.run import Comparison, run
from tests.campaigns.planted import Faults
from tests.campaigns.task_assignor_differential.comparison import compare, differences
from tests.campaigns.task_assignor_differential.faults import FAULTS
from tests.campaigns.task_assignor_differential.history import STEPS
from tests.campaigns.task_assignor_differential.kafkas import Question


def _kind(question: Question) -> str:
    standbys = "with" if question.group.num_standby_replicas else "without"
    return f"{standbys} standbys, {'hashed' if question.is_hashed else 'sorted'}"


def main() -> int:
    """Run it."""
    faults = FAULTS if sticky_task_assignor.__file__.endswith(".py") else Faults()
    return run(Comparison("task-assignor-differential", __doc__, STEPS, compare, differences, _kind, faults))


if __name__ == "__main__":
    sys.exit(main())
