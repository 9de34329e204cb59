"""Client libraries with right and wrong credentials, by each mechanism, and what becomes of each."""

import asyncio
import logging
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError as AIOKafkaError
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as KafkaPythonError
from kafka.net.sasl import oauth as kafka_oauth

from benchmarks import kafka_jars
from tests.broker.sasl.jwts import unsecured
from tests.campaigns.sasl_differential.brokers import PASSWORD, WRONG, Listeners
from tests.campaigns.sasl_differential.dialogues import claims

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_SASL = {"security_protocol": "SASL_PLAINTEXT"}


def matrix(listeners: Listeners) -> dict[str, Any]:
    """Each client by each mechanism, let in or refused, and the error by which it was told."""
    address = f"127.0.0.1:{listeners.clients}"
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    return {
        f"{client.__name__} {mechanism} {'right' if is_right else 'wrong'}": client(address, mechanism, is_right)
        for client in CLIENTS
        for mechanism in MECHANISMS
        for is_right in (True, False)
    }


def token(is_right: bool) -> str:
    """An unsecured one, for an hour or over already."""
    return unsecured(claims() if is_right else claims(exp=int(time.time()) - 5))


def librdkafka(address: str, mechanism: str, is_right: bool) -> str:
    """confluent-kafka."""
    errors: list[Any] = []
    config: dict[str, Any] = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "error_cb": errors.append,
        "log_level": 0,
    }
    if mechanism == "OAUTHBEARER":
        config["oauth_cb"] = lambda _config: (token(is_right), time.time() + 300)
    else:
        config |= {"sasl.username": "alice", "sasl.password": PASSWORD if is_right else WRONG}
    admin = AdminClient(config, logger=logging.getLogger("unheard"))
    try:
        admin.list_topics(timeout=10 if is_right else 2)
    except KafkaException:
        admin.poll(0)
        told = [error.str() for error in errors if error.name() == "_AUTHENTICATION"]
        return told[0].partition("SASL authentication error: ")[2].partition(" (after")[0] if told else "refused"
    return "let in"


class Provider(kafka_oauth.AbstractTokenProvider):
    """kafka-python's."""

    def __init__(self, value: str) -> None:
        self._value = value

    def token(self) -> str:
        return self._value


class AsyncProvider(AbstractTokenProvider):
    """aiokafka's."""

    def __init__(self, value: str) -> None:
        self._value = value

    async def token(self) -> str:
        return self._value


def _credentials(mechanism: str, is_right: bool, provider: Callable[[str], object]) -> dict[str, Any]:
    if mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": provider(token(is_right))}
    password = PASSWORD if is_right else WRONG
    return {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": password}


def kafka_python(address: str, mechanism: str, is_right: bool) -> str:
    """kafka-python; the error that it has in the end is one of time."""
    config = _credentials(mechanism, is_right, Provider)
    try:
        admin = KafkaAdminClient(bootstrap_servers=address, bootstrap_timeout_ms=5_000 if is_right else 1_500, **_SASL, **config)
    except KafkaPythonError as error:
        return type(error).__name__
    admin.list_topics()
    admin.close()
    return "let in"


def aiokafka(address: str, mechanism: str, is_right: bool) -> str:
    """aiokafka."""

    async def start() -> str:
        producer = AIOKafkaProducer(bootstrap_servers=address, **_SASL, **_credentials(mechanism, is_right, AsyncProvider))
        try:
            await producer.start()
        except AIOKafkaError as error:
            return type(error).__name__
        finally:
            await producer.stop()
        return "let in"

    return asyncio.run(start())


def java(address: str, mechanism: str, is_right: bool) -> str:
    """Kafka's own, by its tool for topics."""
    package = "org.apache.kafka.common.security"
    module = {"PLAIN": "plain.Plain", "OAUTHBEARER": "oauthbearer.OAuthBearer"}.get(mechanism, "scram.Scram")
    options = f'username="alice" password="{PASSWORD if is_right else WRONG}"'
    if mechanism == "OAUTHBEARER":
        # A token without a subject that the broker knows how to read cannot be made by this client: it is over in a moment.
        options = 'unsecuredLoginStringClaim_sub="alice"' + ("" if is_right else ' unsecuredLoginListClaim_scope="" ')
    lines = [
        "security.protocol=SASL_PLAINTEXT",
        f"sasl.mechanism={mechanism}",
        f"sasl.jaas.config={package}.{module}LoginModule required {options};",
    ]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "client.properties"
        file.write_text("\n".join(lines))
        classpath = f"{kafka_jars.libraries(kafka_jars.LOG_TOOLS)}/*"
        command = [
            kafka_jars.java(),
            "-Xmx128m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            classpath,
            "org.apache.kafka.tools.TopicCommand",
        ]
        arguments = ["--bootstrap-server", address, "--list", "--command-config", str(file)]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 0:
        return "let in"
    said = done.stdout + done.stderr
    return next((line.partition("Exception: ")[2] for line in said.splitlines() if "SaslAuthenticationException: " in line), said)


CLIENTS = (librdkafka, kafka_python, aiokafka, java)
