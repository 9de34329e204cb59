"""The broker that hostile requests go to, in a directory of its own: odradek, or Apache Kafka for comparison."""

import contextlib
import resource
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.campaigns.hostile_requests.run import MEBIBYTE
from tests.campaigns.soak.kafka_broker import KafkaBroker

BROKERS = ("odradek", "kafka")


@contextlib.contextmanager
def started(name: str, settings: Mapping[str, object], most_mib: int) -> Iterator[tuple[BrokerProcess | KafkaBroker, Path]]:
    """A broker that may have so much memory, killed at the end, with a directory to write to."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        broker = (
            BrokerProcess(directory / "data", settings=settings)
            if name == "odradek"
            else KafkaBroker(directory / "kafka", settings=settings)
        )
        broker.start()
        try:
            # A broker that takes it all would end others' processes.
            resource.prlimit(broker.pid, resource.RLIMIT_DATA, (most_mib * MEBIBYTE, most_mib * MEBIBYTE))
            yield broker, directory
        finally:
            # How it stops with all these partitions is not the question.
            if broker.running:
                broker.kill9()


def thrown(broker: BrokerProcess | KafkaBroker) -> str:
    """The log of odradek if an exception is in it that nobody expected."""
    log = broker.stderr if isinstance(broker, BrokerProcess) else ""
    return log if "Traceback" in log else ""
