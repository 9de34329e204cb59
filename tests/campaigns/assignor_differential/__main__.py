"""Runs the campaign: ``python -m tests.campaigns.assignor_differential --inputs 20000``."""

import sys

from odradek.coordinator.group.assignor import builtin
from tests.campaigns.assignor_differential.comparison import compare, differences
from tests.campaigns.assignor_differential.faults import FAULTS
from tests.campaigns.assignor_differential.history import STEPS
from tests.campaigns.assignor_differential.kafkas import Question
from tests.campaigns.assignor_differential.run import Comparison, run
from tests.campaigns.planted import Faults


def _kind(question: Question) -> str:
    members = "alike" if question.group.is_homogeneous else "unlike"
    return f"{question.assignor}, members {members}, {'hashed' if question.is_hashed else 'sorted'}"


def main() -> int:
    """Run it."""
    faults = FAULTS if builtin.__file__.endswith(".py") else Faults()
    return run(Comparison("assignor-differential", __doc__, STEPS, compare, differences, _kind, faults))


if __name__ == "__main__":
    sys.exit(main())
