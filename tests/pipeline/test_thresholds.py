"""The limits that make a finding: set by name, and all of them documented."""

from dataclasses import asdict

import pytest

from odradek.pipeline.errors import PipelineError
from odradek.pipeline.findings.finding import Thresholds
from tests.project.documents import DOCS, table

THRESHOLDS = Thresholds()


@pytest.mark.parametrize("settings", [{"no_such": "1"}, {"stuck_s": "long"}, {"stuck_s": "0"}, {"stuck_s": "nan"}])
def test_a_threshold_that_is_none_is_refused(settings):
    with pytest.raises(PipelineError, match="threshold"):
        THRESHOLDS.with_settings(settings)


def test_thresholds_are_set_by_name():
    assert THRESHOLDS.with_settings({"stuck_s": "15"}) == Thresholds(stuck_s=15.0)


def test_the_documents_table_has_every_threshold_with_its_default():
    told = {}
    for row in table(DOCS / "pipeline.md", "threshold", "default", ""):
        names, values = row["threshold"].replace("`", "").split(", "), row["default"].split(", ")
        told |= dict(zip(names, map(float, values), strict=True))
    assert told == asdict(THRESHOLDS)
