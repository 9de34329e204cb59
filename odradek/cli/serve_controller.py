"""``odradek serve`` with ``process.roles`` controller: a controller without a broker."""

import asyncio

from odradek.broker.network.event_loop import LoopErrors
from odradek.broker.start.controller_node import ControllerServer
from odradek.broker.start.shared_server import SharedServer
from odradek.broker.start.start_warnings import warn_of_readable_directories
from odradek.cli.process import FAILED, cannot_start, on_stop_signal, raise_open_files_limit, tell
from odradek.common.config.broker_config import BrokerConfig
from odradek.common.config.definitions import InvalidConfig
from odradek.common.logging import log
from odradek.controller.metadata.metadata_log import MetadataUnreadable
from odradek.protocol.errors import KafkaError
from odradek.storage.errors import DataDirectoryLocked, InconsistentDataDirectory
from odradek.timing.system_clock import SystemClock


async def serve_controller(config: BrokerConfig, *, default_data_dir: str | None) -> int:
    """Run a controller until it is told to stop. Return the exit status."""
    raise_open_files_limit()
    asyncio.get_running_loop().set_exception_handler(LoopErrors(SystemClock()).report)
    stopping = asyncio.Event()
    on_stop_signal(stopping.set)
    failures: list[str] = []

    def fail(reason: str) -> None:
        failures.append(reason)
        stopping.set()

    try:
        server = await ControllerServer.start(SharedServer(config, on_failed=fail))
    except MetadataUnreadable as error:
        return tell(error, FAILED)
    except (DataDirectoryLocked, InconsistentDataDirectory, InvalidConfig, KafkaError, OSError, ValueError) as error:
        return cannot_start(error)
    host, port = server.bound_address
    print(f"odradek controller ready on {f'[{host}]' if ':' in host else host or 'localhost'}:{port}", flush=True)
    for warning in config.warnings:
        log.warn(warning)
    directories = [directory.path for directory in server.log_manager.directories.all]
    warn_of_readable_directories(config, server.node.controller.image, directories)
    if default_data_dir is not None:
        log.info("data directory", path=default_data_dir)
    await stopping.wait()
    if failures:
        # Kafka halts here, too: no stop is clean now.
        return tell(failures[0], FAILED)
    await server.stop()
    return 0
