"""A real broker in a process of its own, for tests that need a real socket, a real disk or a real kill.

Tests take it from the fixture ``broker_process`` (tests/conftest.py); a fixture of wider scope uses ``BrokerProcess`` itself, as
a context manager.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

REPOSITORY = Path(__file__).parent.parent
READY_LINE = "odradek ready on "
HTTP_LINE = "odradek http on "
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
# Tests give their records whatever timestamps they like, and find them again. This is never.
_DEFAULTS = {"log.retention.check.interval.ms": 2**63 - 1}


def command_environment() -> dict[str, str]:
    """The environment in which ``python -m odradek`` is what is tested: this repository's, installed or not, or a build of it."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(REPOSITORY)]))
    return {**os.environ, "PYTHONPATH": path}


def start_command(*arguments: object, **streams: Any) -> "subprocess.Popen[bytes]":
    """Start ``odradek ARGUMENTS`` in a process of its own. SIGINT ends it, also where a shell in the background ignores that."""
    command = [sys.executable, "-m", "odradek", *map(str, arguments)]
    return subprocess.Popen(command, env=command_environment(), preexec_fn=_heed_interrupts, **streams)  # noqa: PLW1509  no threads


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class BrokerProcess:
    """``odradek serve`` on a free port of 127.0.0.1, started and answering.

    ``log_dirs``, if there are any, stand for ``data_dir``. ``settings`` become ``--set key=value``. The port is chosen at the
    first start and kept over restarts, so that clients find the broker again. The log goes to ``stderr_path``, one file for all
    starts. ``program`` is what Python is to run.
    """

    program: tuple[str, ...] = ("-m", "odradek")

    def __init__(
        self,
        data_dir: Path,
        *,
        settings: Mapping[str, object] | None = None,
        arguments: tuple[str, ...] = (),
        log_dirs: Sequence[Path] = (),
    ) -> None:
        self.data_dir = data_dir
        self.log_dirs = log_dirs
        self.settings = {**_DEFAULTS, **(settings or {})}
        self.arguments = arguments
        self.stderr_path = data_dir.with_name(data_dir.name + ".stderr")
        self.host, self.port = "127.0.0.1", 0
        # Of the HTTP port, if there is one; the token if the broker made it.
        self.http_url = self.http_token = ""
        self._process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        """``host:port``, as clients take it for their bootstrap servers."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def stderr(self) -> str:
        """What the broker has logged up to now."""
        return self.stderr_path.read_text(errors="replace") if self.stderr_path.exists() else ""

    def start(self) -> Self:
        """Spawn the broker and return when it has said that it is ready."""
        self.spawn()
        stdout = self._running().stdout
        assert stdout is not None
        readable, _, _ = select.select([stdout], [], [], START_TIMEOUT_S)
        line = stdout.readline() if readable else ""
        if line.startswith(HTTP_LINE):
            self.http_url, _, self.http_token = line.removeprefix(HTTP_LINE).strip().partition(" token ")
            line = stdout.readline()
        if not line.startswith(READY_LINE):
            self.kill9()
            raise AssertionError(f"the broker did not become ready; it said {line!r} and logged:\n{self.stderr}")
        self.port = int(line.rsplit(":", 1)[1])
        return self

    def spawn(self) -> None:
        """Spawn the broker, and do not wait for it."""
        command = [sys.executable, *self.program, "serve", "--host", self.host, "--port", str(self.port)]
        if self.log_dirs:
            command += ["--set", f"log.dirs={','.join(map(str, self.log_dirs))}"]
        else:
            command += ["--data-dir", str(self.data_dir)]
        command += self.arguments
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        with self.stderr_path.open("a") as stderr:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, env=command_environment()
            )

    def stop(self) -> int:
        """Ask for a graceful stop (SIGTERM), wait for it, and return the exit status."""
        return self._end(signal.SIGTERM)

    def wait_ended(self, timeout_s: float) -> int:
        """Wait until the broker ends by itself; its exit status, or minus the signal."""
        process = self._running()
        status = process.wait(timeout_s)
        assert process.stdout is not None
        process.stdout.close()
        return status

    def kill9(self) -> None:
        """End the broker as a power cut of its process would: no handler runs."""
        self._end(signal.SIGKILL)

    def restart(self) -> Self:
        """Start again on the same data and port, after a graceful stop if the broker still runs."""
        if self.running:
            self.stop()
        return self.start()

    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None, "the broker was not started"
        return self._process

    def _end(self, with_signal: signal.Signals) -> int:
        process = self._running()
        process.send_signal(with_signal)
        try:
            return process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the broker did not end within {STOP_TIMEOUT_S} s; it logged:\n{self.stderr}") from None
        finally:
            assert process.stdout is not None
            process.stdout.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Stop the broker if it still runs: gracefully, and without an unhandled exception in its log, if the test went well."""
        if not self.running:
            return
        status = self.stop()
        if kind is None:
            assert status == 0, f"the broker ended with status {status}; it logged:\n{self.stderr}"
            assert "Traceback" not in self.stderr, f"the broker logged an exception:\n{self.stderr}"
