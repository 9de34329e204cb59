"""``odradek serve``: run a broker with the options of the command line, until its graceful end.

Exit status: 0 after a graceful stop; 1 if the disks failed under a running broker or the metadata log cannot be read; 2 if it
could not start for a reason that the user can fix (a bad config, a port in use, a data directory that another broker holds or
that cannot be written). Such a reason is one line on stderr.
"""

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.broker.network.event_loop import BusyPoll, LoopErrors
from odradek.broker.start.broker_server import BrokerServer
from odradek.cli import process
from odradek.cli.process import FAILED, QuietCollections, cannot_start, on_stop_signal, raise_open_files_limit, tell
from odradek.common.config.broker_config import BrokerConfig, InvalidConfig, load, parse_properties
from odradek.common.config.listener_config import parse_endpoints
from odradek.common.logging import log
from odradek.controller.metadata.metadata_log import MetadataUnreadable
from odradek.controller.quorum.leader_discovery import MembershipLost
from odradek.protocol.errors import KafkaError
from odradek.storage.errors import DataDirectoryLocked, InconsistentDataDirectory
from odradek.timing.driver import loop_factory
from odradek.timing.system_clock import SystemClock
from odradek.timing.threaded_background import ThreadedBackground

if TYPE_CHECKING:
    from odradek.broker.metrics.endpoint import MetricsEndpoint
    from odradek.broker.start.server import Broker
    from odradek.cli.secure import SecuredBroker
    from odradek.cli.serve_options import Control, Metrics
    from odradek.testing.faults.faults import Faults
    from odradek.testing.faults.vocabulary import FaultKeywords
    from odradek.testing.severed import SeverableFileSystem

# The time one thread may run while another waits, during a thread's long work. Python's default is 5 ms.
_SWITCH_INTERVAL_S = 0.0002
DEFAULT_LISTENER = "PLAINTEXT://127.0.0.1:9092"
SECURE_LISTENER = "SASL_SSL://127.0.0.1:9092"


def run(
    *,
    host: str | None,
    port: int | None,
    data_dir: Path | None,
    config_file: Path | None,
    settings: Mapping[str, str],
    is_secure: bool = False,
    metrics: "Metrics | None" = None,
    faults_file: Path | None = None,
    control: "Control | None" = None,
    serve: Callable[[Mapping[str, str], list["FaultKeywords"], "SecuredBroker | None"], Coroutine[None, None, int]] | None = None,
) -> int:
    """Run a broker until SIGTERM or SIGINT. Return the exit status.

    With ``is_secure`` it admits clients by SASL_SSL only (``cli.secure``), and scrapers of its metrics by TLS and a token.
    ``faults_file`` has fault rules. With ``control``, ``serve`` runs another broker in its place, with the settings and rules.
    """
    try:
        rules = [] if faults_file is None else _read_rules(faults_file)
    except (ValueError, OSError) as error:
        return cannot_start(error)
    try:
        properties = parse_properties(config_file.read_text(encoding="utf-8")) if config_file else {}
        merged = {**properties, **settings}
        used_default = None
        if control is not None and control.is_in_memory:
            place_in_memory(merged)
        else:
            used_default = place_data(merged, data_dir)
        if is_secure:
            merged.setdefault("listeners", SECURE_LISTENER)
        place_listener(merged, host, port)
        door = None
        if is_secure:
            from odradek.cli.secure import secure_broker

            door, metrics = secure_broker(merged, metrics, None if control is None else control.host)
        config = load(None, merged)
    except UnicodeDecodeError:
        return cannot_start(f"{config_file} is not UTF-8 text")
    except (InvalidConfig, DataDirectoryLocked, InconsistentDataDirectory, OSError) as error:
        return cannot_start(error)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            if serve is not None:
                return runner.run(serve(merged, rules, door))
            if config["process.roles"] == ("controller",):
                from odradek.cli.serve_controller import serve_controller

                if metrics is not None or rules:
                    return cannot_start("--metrics-port and --faults are for a broker, but process.roles is controller")
                return runner.run(serve_controller(config, default_data_dir=used_default))
            return runner.run(_serve(config, metrics, rules, default_data_dir=used_default, door=door))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def place_data(settings: dict[str, str], data_dir: Path | None) -> str | None:
    """Place the data: the flag, else ``log.dirs`` or ``log.dir``, else the user's data folder, which is then returned."""
    if data_dir is not None:
        settings["log.dirs"] = str(data_dir.absolute())
    elif "log.dirs" not in settings and "log.dir" not in settings:
        import platformdirs

        settings["log.dirs"] = platformdirs.user_data_dir("odradek", appauthor=False)
        return settings["log.dirs"]
    return None


def place_in_memory(settings: dict[str, str]) -> None:
    """Remove the settings for data directories on a disk."""
    for name in ("log.dirs", "log.dir", "metadata.log.dir"):
        settings.pop(name, None)


def place_listener(settings: dict[str, str], host: str | None, port: int | None) -> None:
    """Put the host and port flags into the first of ``listeners``; a missing flag changes nothing.

    A server.properties of Kafka's may name a controller's listener first. It is skipped, unless the node is a controller only.
    """
    if host is None and port is None:
        return
    withheld = {name.strip().upper() for name in settings.get("controller.listener.names", "").split(",")}
    if settings.get("process.roles", "").strip() == "controller":
        withheld = set()
    listeners = [listener.strip() for listener in settings.get("listeners", DEFAULT_LISTENER).split(",")]
    for index, listener in enumerate(listeners):
        name, separator, address = listener.partition("://")
        listener_host, colon, listener_port = address.rpartition(":")
        if separator and colon and name.upper() not in withheld:
            if host is not None:
                listener_host = f"[{host}]" if ":" in host else host
            listeners[index] = f"{name}://{listener_host}:{listener_port if port is None else port}"
            break
    settings["listeners"] = ",".join(listeners)


def ready_line(host: str, port: int) -> str:
    """Return the line that is printed when the broker is ready. A listener on every interface is shown as localhost."""
    return f"odradek ready on {f'[{host}]' if ':' in host else host or 'localhost'}:{port}"


async def _serve(
    config: BrokerConfig,
    metrics_flags: "Metrics | None",
    rules: list["FaultKeywords"],
    *,
    default_data_dir: str | None,
    door: "SecuredBroker | None",
) -> int:
    raise_open_files_limit()
    asyncio.get_running_loop().set_exception_handler(LoopErrors(SystemClock()).report)
    stopping = asyncio.Event()
    on_stop_signal(stopping.set)
    files = _watched_files() if rules else None
    server = BrokerServer(config, file_system=files, background=ThreadedBackground(beside_long_work=ThreadsChangeOften()))
    broker = server.broker
    broker.cleans_in_process = True
    faults = None if files is None else _install_faults(broker, files, rules)
    failures: list[str] = []

    def fail(reason: str) -> None:
        failures.append(reason)
        stopping.set()

    broker.on_failed = fail
    # The collector would traverse the growing state of the coordinators again and again, for tens of milliseconds each time.
    broker.on_bulk_load = gc.freeze
    broker.on_memory_freed = process.trim_heap
    try:
        # Bind before the start: if the port is taken, the data directory stays as it is.
        metrics = None if metrics_flags is None else await _bind_metrics(broker, metrics_flags)
        if not await _start(server, stopping):
            return 0
    except (DataDirectoryLocked, InconsistentDataDirectory, InvalidConfig, KafkaError, OSError) as error:
        return cannot_start(error)
    except MetadataUnreadable as error:
        return tell(error, FAILED)
    except MembershipLost as error:
        return cannot_start(error)
    print(ready_line(*server.bound_address), flush=True)
    if door is not None:
        print(door.told(broker.endpoints), flush=True)
    _poll_busily(server)
    QuietCollections(
        lambda: broker.slices.is_busy,
        lambda: sum(route.requests for route in broker.dispatcher.routes()),
        asyncio.get_running_loop().call_later,
    ).begin()
    broker.log_start()
    if default_data_dir is not None:
        log.info("data directory", path=default_data_dir)
    if metrics is not None:
        await metrics.serve()
        log.info("metrics", url=metrics.url)
    await stopping.wait()
    if failures:
        # Kafka halts here, too: no stop is clean now, and unsynced data is lost.
        return tell(failures[0], FAILED)
    if metrics is not None:
        metrics.close()
    if faults is not None:
        faults.let_go()
    await server.stop()
    return 0


async def _start(server: BrokerServer, stopping: asyncio.Event) -> bool:
    """Start; return False if the user stopped it before it joined its cluster."""
    if not server.broker.is_member:
        await server.start()
        return True
    starting = asyncio.ensure_future(server.start())
    stop = asyncio.ensure_future(stopping.wait())
    await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait((starting,))
        if starting.cancelled():
            return False
    await starting
    return True


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _poll_busily(server: BrokerServer) -> None:
    """Enable busy polling. Only here: elsewhere it would compete with the user's own code, and on one core with its clients."""
    broker = server.broker
    window_us: int = broker.config["socket.busy.poll.us"] if usable_cores() > 1 else 0
    connections = server.connections
    connections.busy_poll = BusyPoll(asyncio.get_running_loop().call_soon, broker.clock, window_us / 1000, connections.outbox)


class ThreadsChangeOften:
    """A context manager for any thread. Inside, the interpreter switches threads often, so requests need not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entered = 0
        self._interval_s = 0.0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Enter one of the contexts. Any thread may do so."""
        with self._lock:
            self._entered += 1
            if self._entered == 1:
                self._interval_s = sys.getswitchinterval()
                sys.setswitchinterval(min(self._interval_s, _SWITCH_INTERVAL_S))
        try:
            yield
        finally:
            with self._lock:
                self._entered -= 1
                if not self._entered:
                    sys.setswitchinterval(self._interval_s)


def _read_rules(path: Path) -> list["FaultKeywords"]:
    # Imported late: most brokers never need it.
    from odradek.testing.faults.faults import read_rules

    return read_rules(path)


def _watched_files() -> "SeverableFileSystem":
    from odradek.testing.faults.faults import watched_files

    return watched_files()


def _install_faults(broker: "Broker", files: "SeverableFileSystem", rules: list["FaultKeywords"]) -> "Faults":
    from odradek.testing.faults.faults import install

    log.warn("faults are injected", rules=len(rules))
    return install(broker, files, rules)


async def _bind_metrics(broker: "Broker", flags: "Metrics") -> "MetricsEndpoint":
    from odradek.broker.metrics.endpoint import MetricsEndpoint

    context = None
    if flags.certificate is not None:
        from odradek.cli.certificate_file import CertificateFile

        context = CertificateFile(flags.certificate, "--metrics-certificate").context
    host = flags.host
    if host is None:
        host = parse_endpoints("listeners", broker.config["listeners"])[0].host
    endpoint = MetricsEndpoint(broker, flags.token, context)
    await endpoint.bind(host, flags.port)
    return endpoint
