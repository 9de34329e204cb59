"""Spark's source and sink on a listener with SASL and TLS, with what docs/sasl.md has for it."""

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from benchmarks.ports import free_ports
from odradek.common.config.broker_config import parse_properties
from tests.broker_process import BrokerProcess
from tests.project.documents import DOCS, code_blocks
from tests.spark.kafka import TIMEOUT_S

PAGE = DOCS / "sasl.md"
[EXAMPLE] = (block for block in code_blocks(PAGE, "python") if "kafka.sasl.jaas.config" in block)


@pytest.fixture(scope="session")
def secure_broker(tmp_path_factory, certificates):
    """The page's, with two of its listeners. It stays to the end: Spark keeps its producers, which would look for it."""
    [page] = (block for block in code_blocks(PAGE, "properties") if "super.users=User:admin" in block)
    settings = parse_properties(page.replace("certs/", f"{certificates.directory}/"))
    settings |= {"super.users": "User:ANONYMOUS;User:carol"}
    admin, secure = free_ports(2)
    settings["listeners"] = f"ADMIN://127.0.0.1:{admin},SECURE://127.0.0.1:{secure}"
    settings["listener.security.protocol.map"] = "ADMIN:PLAINTEXT,SECURE:SASL_SSL"
    with BrokerProcess(tmp_path_factory.mktemp("sasl") / "broker", settings=settings) as broker:
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        carol = UserScramCredentialUpsertion("carol", credential, b"carol-secret")
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.alter_user_scram_credentials([carol])["carol"].result(TIMEOUT_S)
        yield f"localhost:{secure}"


def test_spark_reads_what_it_has_written_by_sasl_and_tls(spark, certificates, secure_broker, topic):
    placed = EXAMPLE.replace("localhost:9094", secure_broker).replace("certs/ca.pem", certificates.path("ca.pem"))
    *made, read = placed.replace("greetings", topic).splitlines()
    namespace = {"spark": spark}
    exec("\n".join(made), namespace)
    rows = spark.createDataFrame([("hello",)], "value string")
    rows.write.format("kafka").options(**namespace["secure"], topic=topic).save()
    [row] = eval(read, namespace).collect()
    assert row.value == b"hello"
