"""`odradek cluster` with three brokers in the place of one: what is killed is one of them, each in its turn."""

import json
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cli.local_cluster.cluster_process import ClusterProcess

# So soon do the others take over what a broker led.
_SETTINGS = {"broker.session.timeout.ms": 1_000, "broker.heartbeat.interval.ms": 200}


class ThreeBrokers:
    """As ``BrokerProcess``, started; ``address`` has all of theirs, with commas between."""

    def __init__(self, scratch: Path, settings: Mapping[str, object]) -> None:
        scratch.mkdir(exist_ok=True)
        self._data_dir = scratch / "data"
        chosen = [word for key, value in {**_SETTINGS, **settings}.items() for word in ("--set", f"{key}={value}")]
        self._cluster = ClusterProcess(scratch, "--brokers", 3, *chosen, data_dir=self._data_dir).wait_ready()
        self._turns = cycle((1, 2, 3))
        self._killed = 0
        self.address = ",".join(self._cluster.addresses)

    @property
    def stderr(self) -> str:
        """The log lines of all brokers, in the order of time."""
        logs = [path.read_text(errors="replace") for path in sorted(self._data_dir.glob("broker-*.log"))]
        lines = [line for log in logs for line in log.splitlines() if line.startswith("{") and line.endswith("}")]
        return "\n".join(sorted(lines, key=lambda line: str(json.loads(line)["timestamp"])))

    def kill9(self) -> None:
        """End the next of them as a power cut of its process would."""
        self._killed = next(self._turns)
        status, _, told = self._cluster.ask("kill", self._killed)
        assert status == 0, told

    def start(self) -> None:
        """Start again what was killed; the others lead and coordinate what it did."""
        status, _, told = self._cluster.ask("start", self._killed)
        assert status == 0, told

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """End all; none of them has logged an exception."""
        self._cluster.close()
        if kind is None:
            said = "".join(path.read_text(errors="replace") for path in self._data_dir.glob("*.log"))
            assert "Traceback" not in said, said
