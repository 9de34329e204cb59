"""The containers of the compose file, each a process in the root of its image: the broker, and the Spark job that reads it."""

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Final

from confluent_kafka import Producer

from benchmarks.ports import free_ports
from tests.campaigns.image_steps.image import Image, build, make_base, with_ports
from tests.project.containers import SERVICES, words_of

RECORDS: Final = [f"record {number}" for number in range(3)]
_READY: Final = "odradek ready on "
_TIMEOUT_S: Final = 300


@dataclass
class Ran:
    """The images, and what became of their containers: exit statuses, and what the Spark job printed."""

    images: dict[str, Image]
    base_took_s: float
    health: int = -1
    printed: str = ""
    status: int = -1

    def extensions(self) -> list[Path]:
        """The compiled modules in the broker's image."""
        return list(self.images["broker"].root.path.glob("opt/odradek/lib/*/site-packages/odradek/**/*.so"))

    def violations(self) -> list[str]:
        """What is not as it should be."""
        broker, spark = (self.images[name].root for name in ("broker", "spark"))
        data = broker.path / "data"
        owners = {path.stat().st_uid for path in data.rglob("*")}
        unread = [record for record in RECORDS if f"|{record}" not in self.printed]
        fetched = [path for volume in _volumes("spark") for path in (spark.path / volume[1:]).glob("**/jars/*kafka-clients*.jar")]
        broken = {
            f"the health check of the broker ended with status {self.health}": self.health != 0,
            f"the broker ended with status {self.status}": self.status != 0,
            f"files of the broker's volume belong to {owners}": owners != {data.stat().st_uid},
            "nothing is compiled in the broker's image": not self.extensions(),
            "there is a compiler in the broker's image": (broker.path / "usr" / "bin" / "gcc").exists(),
            f"the Spark job did not print {unread}; it printed {self.printed[-5000:]}": bool(unread),
            "the Spark job's volume is not where it keeps Kafka's client": not fetched,
            "the Spark job has a cache outside its volume": any(spark.path.glob("home/spark/.ivy*")),
        }
        return [claim for claim, is_so in broken.items() if is_so]


@contextmanager
def built_and_run(*, whole: bool) -> Iterator[Ran]:
    """Build the three images, and run the compose file's default service and its profile "spark"; all is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="odradek-image-") as folder:
        begun = time.monotonic()
        base = make_base(Path(folder, "base"))
        base_took_s = time.monotonic() - begun
        with ThreadPoolExecutor() as pool:
            spark = pool.submit(build, "spark", base, {}, whole=whole)
            images = {"build": build("build", base, {}, whole=whole)}
            images["broker"] = build("broker", base, images, whole=whole)
            images["spark"] = spark.result()
        ran = Ran(images, base_took_s)
        _run_containers(ran)
        yield ran


def _run_containers(ran: Ran) -> None:
    outside, inside = free_ports(2)
    ports = {"9092": outside, "29092": inside}
    image = ran.images["broker"]
    image.mount(_volumes("odradek"))
    command = [*words_of("broker", "ENTRYPOINT"), *with_ports(SERVICES["odradek"]["command"], ports)]
    with image.start(command) as process:
        try:
            printed = _read_until(process, _READY)
            assert _READY in printed, printed
            with image.start(with_ports(words_of("broker", "HEALTHCHECK"), ports)) as asked:
                ran.health = asked.wait(_TIMEOUT_S)
            _produce(f"localhost:{outside}")
            ran.printed = _read_by_spark(ran, ports)
            # As an engine does: to the process that is the first one in the container.
            [first] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            os.kill(int(first), signal.SIGTERM)
            ran.status = process.wait(30)
        finally:
            process.kill()


def _produce(address: str) -> None:
    producer = Producer({"bootstrap.servers": address})
    for record in RECORDS:
        producer.produce("orders", record)
    assert producer.flush(20) == 0


def _read_by_spark(ran: Ran, ports: dict[str, int]) -> str:
    image = ran.images["spark"]
    image.mount(_volumes("spark"))
    command = [*words_of("spark", "ENTRYPOINT"), *with_ports(SERVICES["spark"]["command"], ports)]
    with image.start(command) as process:
        try:
            return _read_until(process, RECORDS[-1])
        finally:
            process.kill()


def _volumes(service: str) -> list[str]:
    """Where the compose file mounts them."""
    return [volume.partition(":")[2] for volume in SERVICES[service]["volumes"]]


def _read_until(process, text: str) -> str:
    """What a process prints until it says ``text``, or ends, or is ended because that took too long."""
    lines = []
    end = Timer(_TIMEOUT_S, process.kill)
    end.start()
    try:
        for line in process.stdout:
            lines.append(line)
            if text in line:
                break
    finally:
        end.cancel()
    return "".join(lines)
