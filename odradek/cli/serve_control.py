"""``odradek serve --control-port``: a broker of the test kit in its own process, controlled over HTTP."""

import asyncio
from collections.abc import Iterable, Mapping
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from odradek.cli.certificate_file import CertificateFile
from odradek.cli.process import FAILED, cannot_start, on_stop_signal, raise_open_files_limit, tell
from odradek.cli.serve import ready_line
from odradek.cli.serve_options import Control
from odradek.common.config.definitions import InvalidConfig
from odradek.common.logging import lines_to, log
from odradek.controller.metadata.metadata_log import MetadataUnreadable
from odradek.protocol.errors import KafkaError
from odradek.storage.errors import DataDirectoryLocked, InconsistentDataDirectory

if TYPE_CHECKING:
    from odradek.cli.secure import SecuredBroker
    from odradek.testing.faults.vocabulary import FaultKeywords
    from odradek.testing.in_process import LogLine


async def serve_controlled(
    settings: Mapping[str, str], rules: Iterable["FaultKeywords"], door: "SecuredBroker | None", *, control: Control
) -> int:
    """Run a broker with ``settings`` and fault ``rules``, until a signal. Return the exit status.

    With a ``door``, the control interface uses TLS, and instructions for clients are printed.
    """
    # Imported late: a broker without the interface does not pay for them.
    from odradek.testing.control.server import ControlServer
    from odradek.testing.threaded import Broker

    has_own_files = door is not None and control.token is None and control.certificate is None
    try:
        if door is not None:
            control = door.secure_control(control)
        context = None if control.certificate is None else CertificateFile(control.certificate, "--control-certificate").context
    except (InvalidConfig, OSError) as error:
        return cannot_start(error)
    raise_open_files_limit()
    stopping = asyncio.Event()
    on_stop_signal(stopping.set)
    directory = None if control.is_in_memory else settings.get("log.dirs") or settings["log.dir"]
    broker = Broker(directory, configs=settings, on_line=_print, has_own_configs=False)
    token = control.token or token_urlsafe(16)
    server = ControlServer(broker, token, context)
    server.add_faults(rules)
    try:
        server.start(control.host, control.port)
        await broker.start()
    except (DataDirectoryLocked, InconsistentDataDirectory, KafkaError, OSError) as error:
        await server.close()
        return cannot_start(error)
    except MetadataUnreadable as error:
        await server.close()
        return tell(error, FAILED)
    # A given token is known to the user, and must not be printed.
    print(f"odradek control on {server.url}{'' if control.token else f' token {token}'}", flush=True)
    host, _, port = broker.bootstrap_servers.rpartition(":")
    print(ready_line(host, int(port)), flush=True)
    if door is not None:
        print(door.told(broker.core.endpoints, server.url if has_own_files else None), flush=True)
    await stopping.wait()
    await server.close()
    if broker.is_running:
        await broker.stop()
    return 0


def _print(line: "LogLine") -> None:
    """Log a line like a normal broker."""
    with lines_to(None):
        log.tell(line.level, line.event, line.fields)
