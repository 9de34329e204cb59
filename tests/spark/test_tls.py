"""Spark's source and sink by TLS, with what docs/security.md has for Java: each line an option with ``kafka.`` before it."""

import pytest

from tests.broker_process import BrokerProcess
from tests.project.documents import DOCS, code_blocks

_, PEM, PKCS12 = code_blocks(DOCS / "security.md", "properties")


@pytest.fixture(scope="session")
def tls_broker(tmp_path_factory, certificates):
    """It stays to the end: Spark keeps its producers, which would look for it."""
    settings = {"listeners": "SSL://127.0.0.1:0", **certificates.settings(client_auth="required")}
    with BrokerProcess(tmp_path_factory.mktemp("tls") / "broker", settings=settings) as broker:
        yield broker


@pytest.mark.parametrize("properties", [PEM, PKCS12], ids=["PEM", "PKCS12"])
def test_spark_reads_what_it_has_written_by_tls(spark, certificates, tls_broker, topic, properties):
    placed = properties.replace("certs/truststore.p12", certificates.path("ca.p12"))
    lines = placed.replace("certs/", f"{certificates.directory}/").splitlines()
    options = {f"kafka.{key}": value for key, _, value in (line.partition("=") for line in lines)}
    options["kafka.bootstrap.servers"] = tls_broker.address
    rows = spark.createDataFrame([(f"value {number}",) for number in range(20)], "value string")
    rows.write.format("kafka").options(**options, topic=topic).save()
    found = spark.read.format("kafka").options(**options, subscribe=topic).load()
    assert sorted(bytes(row.value).decode() for row in found.select("value").collect()) == sorted(
        row.value for row in rows.collect()
    )
