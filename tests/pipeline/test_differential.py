"""A short share of ``python -m tests.campaigns.pipeline_differential``, on odradek."""

from tests.campaigns.pipeline_differential.__main__ import SETTINGS, compare

STEPS = 20


def test_the_tables_say_what_the_cluster_answers_and_raw_what_kafkas_formatters_print(spark, broker_process, warehouse):
    broker = broker_process(settings=SETTINGS)
    counts, found = compare(spark, broker.address, warehouse, seed=2, steps=STEPS, parts=1)
    assert found == []
    assert all(counts.values())
