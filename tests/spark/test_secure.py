"""Spark's source and sink with the options that ``serve --secure`` prints."""

import pytest

from tests.secure import SecureBroker


@pytest.fixture(scope="session")
def secure_broker(tmp_path_factory):
    """It stays to the end: Spark keeps its producers, which would look for it."""
    with SecureBroker(tmp_path_factory.mktemp("secure") / "data") as broker:
        yield broker


def test_spark_reads_what_it_has_written_with_the_options_that_are_printed(spark, secure_broker, topic):
    kafka = secure_broker.python("# Spark")
    rows = spark.createDataFrame([(f"value {number}",) for number in range(20)], "value string")
    rows.write.format("kafka").options(**kafka, topic=topic).save()
    found = spark.read.format("kafka").options(**kafka, subscribe=topic).load()
    assert sorted(bytes(row.value).decode() for row in found.select("value").collect()) == sorted(
        row.value for row in rows.collect()
    )
