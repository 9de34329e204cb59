"""``odradek grow-out``: Apache Kafka takes over a data directory. Writes its ``server.properties``, and changes nothing else.

Give the configuration that the broker ran with, on the command line or in a file. Dynamic configs are in the data directory,
where Kafka finds them. docs/growing-out.md describes the whole procedure, and the way back.

The quorum of a metadata log may have its voters in the log (KIP-853). A log that ``kafka-storage.sh format --standalone``
began has a record of its voters, in its first snapshot or in the log. All other logs get their voters from
``controller.quorum.voters``.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from odradek.cli.options import CannotWork, key_and_value
from odradek.cli.serve import place_data, place_listener
from odradek.common.config.broker_config import BrokerConfig, InvalidConfig, load, parse_properties
from odradek.common.config.kafka_properties import KafkaProperties, kafka_properties
from odradek.controller.metadata.snapshot_files import SUFFIX
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.quorum_records import KRAFT_VOTERS, control_type
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from odradek.storage.directories import checkpoints
from odradek.storage.filesystem import FileSystem, RealFileSystem


def has_voters(file_system: FileSystem, metadata_dir: str) -> bool:
    """Return whether the log in ``metadata_dir``, or its newest snapshot, has a record of voters. Raises OSError."""
    directory = f"{metadata_dir}/{CLUSTER_METADATA_TOPIC}-0"
    if not file_system.exists(directory):
        return False
    names = sorted(file_system.list_dir(directory))
    snapshots = [name for name in names if name.endswith(SUFFIX)][-1:]
    segments = [name for name in names if name.endswith(".log")]
    return any(_has_voters(file_system.read_bytes(f"{directory}/{name}")) for name in (*snapshots, *segments))


def _has_voters(data: bytes) -> bool:
    """Return whether a voters record precedes the first damaged batch. The next start reports the damage."""
    try:
        return any(
            control_type(record) == KRAFT_VOTERS
            for position, header in iter_batches(data)
            if header.is_control
            for record in read_records(data, position)
        )
    except MalformedMessage:
        return False


@click.command("grow-out")
@click.option("--host", help="The --host of odradek serve.")
@click.option("--port", type=click.IntRange(0, 65535), help="The --port of odradek serve.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="The data directory.  [default: the user's data folder]")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="The server.properties of odradek.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, callback=key_and_value, help="One config; repeatable.")
@click.option(
    "--controller-port",
    type=click.IntRange(1, 65535),
    help="Port of Kafka's controller on 127.0.0.1, if no listener for it is configured.  [default: 9093]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("server.properties"), show_default=True, help="The file to write."
)
def grow_out(
    host: str | None,
    port: int | None,
    data_dir: Path | None,
    config_file: Path | None,
    settings: dict[str, str],
    controller_port: int | None,
    out: Path,
) -> int:
    """Write a server.properties for Apache Kafka on this data directory.

    Stop the broker first. Give the same options as to odradek serve.
    """
    try:
        config = _configuration(config_file, settings, data_dir, host, port)
        with _nobody_serves(config):
            metadata_dir = config["metadata.log.dir"] or config["log.dirs"][0]
            log_has_voters = has_voters(RealFileSystem(), metadata_dir)
            found = kafka_properties(config, controller_port, log_has_voters=log_has_voters)
            _warn(config, found)
            with out.open("x", encoding="ascii") as file:
                file.write(found.text())
    except UnicodeDecodeError:
        raise CannotWork(f"{config_file} is not UTF-8 text") from None
    except FileExistsError:
        raise CannotWork(f"{out} exists: name another file with --out") from None
    except (InvalidConfig, OSError) as error:
        raise CannotWork(str(error)) from None
    click.echo(f"wrote {out}: start Apache Kafka 4.4 with kafka-server-start.sh {out}")
    return 0


def _configuration(
    config_file: Path | None, settings: dict[str, str], data_dir: Path | None, host: str | None, port: int | None
) -> BrokerConfig:
    """Build the config like ``odradek serve``, with absolute paths: Kafka may start in another working directory."""
    merged = parse_properties(config_file.read_text(encoding="utf-8")) if config_file else {}
    merged |= settings
    place_data(merged, data_dir)
    place_listener(merged, host, port)
    config = load(None, merged)
    for name in ("log.dirs", "metadata.log.dir"):
        if name == "log.dirs" or name in merged:
            paths = config[name] if name == "log.dirs" else (config[name],)
            merged[name] = ",".join(str(Path(path).absolute()) for path in paths)
    return load(None, merged)


@contextlib.contextmanager
def _nobody_serves(config: BrokerConfig) -> Iterator[None]:
    """Hold the locks of the data directories, each of which must be this node's."""
    files = RealFileSystem()
    with contextlib.ExitStack() as locks:
        for path in config["log.dirs"]:
            try:
                found = checkpoints.read_meta_properties(files, path)
            except ValueError as error:
                raise CannotWork(f"{path}/{checkpoints.META_PROPERTIES_FILE} cannot be used: {error}") from None
            if found is None:
                raise CannotWork(f"{path} is not a data directory: it has no {checkpoints.META_PROPERTIES_FILE}")
            if found.get("node.id") != str(config["node.id"]):
                raise CannotWork(
                    f"{path} has the data of node {found.get('node.id')}, not {config['node.id']}: correct node.id or --data-dir"
                )
            try:
                lock = files.lock(f"{path}/{checkpoints.LOCK_FILE}")
            except BlockingIOError:
                raise CannotWork(f"{path} is in use by a broker: stop it first") from None
            locks.callback(lock.release)
        yield


def _warn(config: BrokerConfig, found: KafkaProperties) -> None:
    """Print warnings for the user, one line each."""
    for path in config["log.dirs"]:
        if not Path(path, checkpoints.CLEAN_SHUTDOWN_FILE).exists():
            _tell(f"{path} was not stopped cleanly: Kafka recovers its logs when it starts, which may take a while")
    for name in found.unknown:
        _tell(f"{name} is left out: Apache Kafka has no such config")
    for name in found.awakened:
        _tell(f"{name} is kept: odradek ignored it, but Kafka will use it")


def _tell(warning: str) -> None:
    click.echo(f"odradek: {warning}", err=True)
