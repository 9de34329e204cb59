"""``odradek serve``: run a broker with the options of the command line, until its graceful end.

Exit status: 0 after a graceful stop; 1 if the disks failed under a running broker or the metadata log cannot be read; 2 if it
could not start for a reason that the user can fix (a bad config, a port in use, a data directory that another broker holds or
that cannot be written). Such a reason is one line on stderr.
"""

import asyncio
import contextlib
import signal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from odradek.broker.network.event_loop import LoopErrors
from odradek.cli.process import FAILED, QuietCollections, cannot_start, on_stop_signal, raise_open_files_limit, tell
from odradek.cli.serve_node import Node, PlainNode, kit_node, make_initial_state, make_topics
from odradek.cli.serve_options import InvalidInitFile, ServeOptions
from odradek.common.config.broker_config import BrokerConfig, InvalidConfig, load, parse_properties
from odradek.common.config.listener_config import parse_endpoints
from odradek.common.logging import LEVELS, log
from odradek.controller.metadata.metadata_log import MetadataUnreadable
from odradek.controller.quorum.leader_discovery import MembershipLost
from odradek.protocol.errors import KafkaError
from odradek.storage.errors import DataDirectoryLocked, InconsistentDataDirectory
from odradek.timing.driver import loop_factory
from odradek.timing.system_clock import SystemClock

if TYPE_CHECKING:
    from odradek.cli.secure import SecuredBroker
    from odradek.cli.serve_http import ServedHttp
    from odradek.testing.faults.vocabulary import FaultKeywords

DEFAULT_LISTENER = "PLAINTEXT://127.0.0.1:9092"
SECURE_LISTENER = "SASL_SSL://127.0.0.1:9092"


def run(options: ServeOptions) -> int:
    """Run a broker until SIGTERM or SIGINT. Return the exit status."""
    try:
        rules = [] if options.faults_file is None else _read_rules(options.faults_file)
        initial = None if options.init_file is None else _read_init_file(options.init_file)
    except (ValueError, OSError) as error:
        return cannot_start(error)
    with contextlib.ExitStack() as stack:
        try:
            properties = parse_properties(options.config_file.read_text(encoding="utf-8")) if options.config_file else {}
            merged = {**properties, **options.settings}
            used_default = None
            if options.is_in_memory:
                place_in_memory(merged)
            else:
                used_default = place_data(merged, options.data_dir)
            if options.is_secure:
                merged.setdefault("listeners", SECURE_LISTENER)
            place_listener(merged, options.host, options.port)
            # A bad config is refused before anything is bound or written.
            config = load(None, merged)
            if config["process.roles"] == ("controller",) and options.of_a_broker:
                flags = ", ".join(options.of_a_broker)
                return cannot_start(f"{flags}: these are for a broker, but process.roles is controller; leave them out")
            if config["process.roles"] == ("broker",) and options.init_file is not None:
                return cannot_start("--init is for a broker with its own controller, but process.roles is broker; leave it out")
        except UnicodeDecodeError:
            return cannot_start(f"{options.config_file} is not UTF-8 text")
        except (InvalidConfig, OSError) as error:
            return cannot_start(error)
        secrets = (
            stack.enter_context(TemporaryDirectory(prefix="odradek-")) if options.is_secure and options.is_in_memory else None
        )
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                if config["process.roles"] == ("controller",):
                    from odradek.cli.serve_controller import serve_controller

                    return runner.run(serve_controller(config, default_data_dir=used_default))
                return runner.run(_Start(options, merged, rules, initial, secrets, used_default).run())
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


class _Start:
    """One start of a broker, to its end. ``secrets`` is a directory for the files of ``--secure`` if the data is in memory."""

    def __init__(
        self,
        options: ServeOptions,
        settings: dict[str, str],
        rules: "list[FaultKeywords]",
        initial: dict[str, Any] | None,
        secrets: str | None,
        default_data_dir: str | None,
    ) -> None:
        self._options = options
        self._settings = settings
        self._rules = rules
        self._initial = initial
        self._secrets = secrets
        self._default_data_dir = default_data_dir
        self._stopping = asyncio.Event()
        self._failures: list[str] = []

    async def run(self) -> int:
        """Serve until a signal. Return the exit status."""
        raise_open_files_limit()
        asyncio.get_running_loop().set_exception_handler(LoopErrors(SystemClock()).report)
        on_stop_signal(self._stopping.set)
        http: ServedHttp | None = None
        try:
            secured = await self._secure()
            http = await self._bind_http(secured)
            node = self._node(load(None, self._settings), http)
            if not await _start(node, self._stopping):
                return 0
            return await self._serve(node, http, secured)
        except (DataDirectoryLocked, InconsistentDataDirectory, InvalidConfig, InvalidInitFile) as error:
            return cannot_start(error)
        except (KafkaError, MembershipLost, OSError) as error:
            return cannot_start(error)
        except MetadataUnreadable as error:
            return tell(error, FAILED)
        finally:
            if http is not None:
                await http.close()

    async def _secure(self) -> "SecuredBroker | None":
        """Make the files of ``--secure``, and put them into the settings. Every port is tried before."""
        if not self._options.is_secure:
            return None
        from odradek.cli.secure import secure_broker
        from odradek.http.port import WAY_OUT, ensure_free

        config = load(None, self._settings)
        for endpoint in (*parse_endpoints("listeners", config["listeners"]), *config.controller_endpoints):
            await ensure_free(endpoint.host, endpoint.port)
        http = self._options.http
        if http is not None and http.is_asked:
            await ensure_free(http.host, http.ports[0], WAY_OUT)
        return secure_broker(self._settings, http, self._secrets)

    async def _bind_http(self, secured: "SecuredBroker | None") -> "ServedHttp | None":
        """Bind the HTTP port. Raises InvalidConfig, OSError."""
        http = self._options.http
        if http is None:
            return None
        from odradek.cli.serve_http import ServedHttp

        return await ServedHttp.bind(http if secured is None else secured.secure_http(http), self._settings)

    def _node(self, config: BrokerConfig, http: "ServedHttp | None") -> Node:
        is_in_memory = self._options.is_in_memory
        if http is None and not is_in_memory:
            return PlainNode(config, self._rules, self._fail)
        broker = kit_node(self._settings, self._fail, is_in_memory=is_in_memory)
        if http is not None:
            http.attach(broker, self._rules)
        else:
            for rule in self._rules:
                broker.faults.add_checked(rule)
        return broker

    def _fail(self, reason: str) -> None:
        self._failures.append(reason)
        self._stopping.set()

    async def _serve(self, node: Node, http: "ServedHttp | None", secured: "SecuredBroker | None") -> int:
        """Serve a node that has started, until a signal. Return the exit status. Raises KafkaError for a refused topic."""
        try:
            await self._make_initial_state(node)
        except BaseException:
            # The reason is the only line.
            log.least_level = LEVELS[-1]
            await node.stop()
            raise
        self._print(node, http, secured)
        QuietCollections(
            lambda: node.is_running and node.core.slices.is_busy,
            lambda: sum(route.requests for route in node.core.dispatcher.routes()) if node.is_running else 0,
            asyncio.get_running_loop().call_later,
        ).begin()
        if self._default_data_dir is not None and not self._options.is_terminal:
            log.info("data directory", path=self._default_data_dir)
        if http is not None:
            http.serve()
        await self._stopping.wait()
        if self._failures:
            # Kafka halts here, too: no stop is clean now, and unsynced data is lost.
            return tell(self._failures[0], FAILED)
        if http is not None:
            await http.close()
        if node.is_running:
            await node.stop()
        return 0

    async def _make_initial_state(self, node: Node) -> None:
        """Make what ``--init`` and ``--topic`` ask for. Raises InvalidInitFile, KafkaError, OSError."""
        if self._options.init_file is not None and self._initial is not None:
            await make_initial_state(node.core, self._options.init_file, self._initial)
        if self._options.topics:
            await make_topics(node.core, self._options.topics)

    def _print(self, node: Node, http: "ServedHttp | None", secured: "SecuredBroker | None") -> None:
        if self._options.is_terminal:
            from odradek.cli.serve_terminal import terminal_lines

            lines = terminal_lines(node.core, self._options, http, secured)
        else:
            lines = [*([] if http is None else [http.line]), ready_line(*node.bound_address)]
        print("\n".join(lines), flush=True)
        if secured is not None:
            print(secured.instructions(node.core.endpoints, None if http is None else http.url), flush=True)


async def _start(node: Node, stopping: asyncio.Event) -> bool:
    """Start; return False if the user stopped it before it joined its cluster."""
    starting = asyncio.ensure_future(node.start())
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


def _read_init_file(path: Path) -> dict[str, Any]:
    # Imported late: most brokers never need it.
    from odradek.cli.init_file import read_init_file

    return read_init_file(path)


def _read_rules(path: Path) -> "list[FaultKeywords]":
    # Imported late: most brokers never need it.
    from odradek.testing.faults.faults import read_rules

    return read_rules(path)
