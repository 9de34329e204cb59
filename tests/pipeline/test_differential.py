"""A short share of ``python -m tests.campaigns.pipeline_differential``, on odradek."""

import pytest

from tests.campaigns.pipeline_differential.__main__ import SETTINGS, compare

STEPS = 20


# Kafka's formatters alone may take four minutes: one that got no processor and printed nothing is asked again, for a minute.
@pytest.mark.timeout(600)
def test_the_tables_say_what_the_cluster_answers_and_raw_what_kafkas_formatters_print(spark, broker_process, warehouse):
    broker = broker_process(settings=SETTINGS)
    counts, found = compare(spark, broker.address, warehouse, seed=2, steps=STEPS, parts=1)
    assert found == []
    assert all(counts.values())
