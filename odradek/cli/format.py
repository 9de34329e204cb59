"""``odradek format``: format data directories with a chosen cluster id, as ``kafka-storage.sh format`` does.

This is optional. At its first start, a new directory gets a random cluster id, or the id of its remote controller.

``--add-scram`` adds a user that the cluster starts with, as in Kafka's format tool:

    SCRAM-SHA-256=[name=alice,password=alice-secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt="BASE64",saltedpassword="BASE64"]

``--add-scram-file``, which Kafka lacks, reads such lines from a file, as other users of the machine can see arguments.
"""

import secrets
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import click

from odradek.broker.start.storage_start import log_dirs
from odradek.cli.options import CannotWork, key_and_value
from odradek.cli.serve import place_data
from odradek.common.config.broker_config import BrokerConfig, InvalidConfig, load, parse_properties
from odradek.controller.metadata.scram_credentials import credential_record
from odradek.controller.metadata.snapshot_generator import write_bootstrap
from odradek.protocol.metadata_records.security import UserScramCredentialRecord
from odradek.protocol.scram import (
    MAX_ITERATIONS,
    MECHANISMS,
    MIN_ITERATIONS,
    salted_password,
)
from odradek.protocol.texts import decode_base64, new_uuid_text
from odradek.storage.directories.data_directories import DataDirectories
from odradek.storage.directories.data_directory import DataDirectory, DirectoryIdentity
from odradek.storage.errors import DataDirectoryLocked, InconsistentDataDirectory
from odradek.storage.filesystem import RealFileSystem
from odradek.timing.system_clock import SystemClock

_SALT_BYTES = 24
_ADD_LATER = (
    "--add-scram is for a new cluster. Use odradek users add. If nobody can log in, start once with a PLAINTEXT listener on "
    "127.0.0.1 (and with an authorizer, User:ANONYMOUS in super.users), add the user there, and restart without them"
)
_KEYS = ("name", "password", "iterations", "salt", "saltedpassword")


def credentials(_context: click.Context, _option: click.Parameter, arguments: tuple[str, ...]) -> list[UserScramCredentialRecord]:
    """Return the records of ``arguments``. Raises BadParameter, whose message has no password."""
    return [_credential(argument.strip()) for argument in arguments]


def _credentials_in(file: Path) -> list[UserScramCredentialRecord]:
    """Return the records of a file's lines. Raises BadParameter, whose message has no password."""
    try:
        with click.open_file(str(file), encoding="utf-8") as lines:
            arguments = [line.strip() for line in lines]
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{file}: {error}") from error
    found = []
    for number, argument in enumerate(arguments, 1):
        try:
            if argument:
                found.append(_credential(argument))
        except click.BadParameter as error:
            raise click.BadParameter(f"{file}, line {number}: {error.message}") from error
    if not found:
        raise click.BadParameter(f"{file} has no user: write a line in the form of --add-scram for each")
    return found


def _credential(argument: str) -> UserScramCredentialRecord:
    name, _, listed = argument.partition("=")
    mechanism = MECHANISMS.get(name)
    if mechanism is None or not (listed.startswith("[") and listed.endswith("]")):
        raise click.BadParameter(f"not of the form MECHANISM=[name=...,password=...] with one of {', '.join(MECHANISMS)}")
    given = _given(listed[1:-1])
    text = given.get("iterations", str(MIN_ITERATIONS))
    iterations = int(text) if text.isdecimal() else 0
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise click.BadParameter(f"iterations must be from {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    try:
        salt = decode_base64(given["salt"]) if "salt" in given else secrets.token_bytes(_SALT_BYTES)
        salted = decode_base64(given["saltedpassword"]) if "saltedpassword" in given else None
    except ValueError as error:
        raise click.BadParameter("salt and saltedpassword must be base64") from error
    if "password" in given:
        salted = salted_password(mechanism, given["password"], salt, iterations)
    elif salted is None or "salt" not in given:
        raise click.BadParameter("give a password, or saltedpassword with its salt")
    return credential_record(given["name"], mechanism, salt=salt, salted=salted, iterations=iterations)


def _given(text: str) -> dict[str, str]:
    given = {}
    for pair in text.split(","):
        key, equals, value = pair.partition("=")
        if not equals or key not in _KEYS:
            raise click.BadParameter(f"the brackets must contain KEY=VALUE pairs; the keys are {', '.join(_KEYS)}")
        is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
        given[key] = value[1:-1] if is_quoted else value
    if not given.get("name"):
        raise click.BadParameter("give the user's name: name=...")
    return given


@click.command("format")
@click.option("--cluster-id", help="The cluster's id.  [default: a random one]")
@click.option("--data-dir", type=click.Path(path_type=Path), help="The data directory.  [default: the user's data folder]")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="A server.properties in Kafka's format.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, callback=key_and_value, help="One config; repeatable.")
@click.option("--ignore-formatted", is_flag=True, help="Skip directories that are formatted already.")
@click.option(
    "--add-scram",
    "users",
    metavar="SCRAM-SHA-256=[name=...,password=...]",
    multiple=True,
    callback=credentials,
    help="A user to create with the cluster; repeatable.",
)
@click.option(
    "--add-scram-file",
    "user_file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A file with a user in each line, written as for --add-scram; - for standard input.",
)
def format(  # noqa: A001  the command's name
    *,
    cluster_id: str | None,
    data_dir: Path | None,
    config_file: Path | None,
    settings: dict[str, str],
    ignore_formatted: bool,
    users: list[UserScramCredentialRecord],
    user_file: Path | None,
) -> int:
    """Give new data directories the cluster's id.

    Use the options that odradek serve will get. The directories are log.dirs and metadata.log.dir.
    """
    if user_file is not None:
        users = users + _credentials_in(user_file)
    try:
        config = _configuration(config_file, settings, data_dir)
        _format(config, cluster_id, users, ignore_formatted=ignore_formatted)
    except UnicodeDecodeError:
        raise CannotWork(f"{config_file} is not UTF-8 text") from None
    except (InvalidConfig, DataDirectoryLocked, InconsistentDataDirectory, OSError) as error:
        raise CannotWork(str(error)) from error
    return 0


def _configuration(config_file: Path | None, settings: dict[str, str], data_dir: Path | None) -> BrokerConfig:
    properties = parse_properties(config_file.read_text(encoding="utf-8")) if config_file else {}
    merged = {**properties, **settings}
    place_data(merged, data_dir)
    return load(None, merged)


def _format(
    config: BrokerConfig, cluster_id: str | None, users: Sequence[UserScramCredentialRecord], *, ignore_formatted: bool
) -> None:
    node_id: int = config["node.id"]
    metadata_dir = config["metadata.log.dir"]
    metadata_path = None if metadata_dir is None else str(Path(metadata_dir).absolute())
    directories = DataDirectories(RealFileSystem(), log_dirs(config), metadata_path, _warn)
    try:
        for directory in directories.all:
            directory.take(node_id)
        new = [directory for directory in directories.all if directory.identity is None]
        known = {each.identity.cluster_id: each.path for each in directories.all if each.identity is not None}
        if users and directories.metadata not in new:
            raise CannotWork(f"{directories.metadata.path} is formatted already: {_ADD_LATER}")
        if known and not ignore_formatted:
            raise CannotWork(f"{', '.join(known.values())}: already formatted; use --ignore-formatted to skip them")
        chosen = cluster_id or next(iter(known), None) or new_uuid_text(uuid4)
        other = next((path for each, path in known.items() if each != chosen), None)
        if other is not None:
            raise CannotWork(
                f"{other} has the data of another cluster, not of {chosen}; choose another directory or --cluster-id"
            )
        _begin(new, chosen, node_id)
        if users:
            write_bootstrap(RealFileSystem(), directories.metadata.path, users, SystemClock().now_ms())
    finally:
        directories.release()


def _begin(new: Sequence[DataDirectory], cluster_id: str, node_id: int) -> None:
    for directory in new:
        directory.begin(lambda: DirectoryIdentity(cluster_id=cluster_id, node_id=node_id, directory_id=uuid4()))
        click.echo(f"{directory.path} is of cluster {cluster_id}, node {node_id}")


def _warn(event: str, **what: object) -> None:
    click.echo(f"odradek: {event}: {what}", err=True)
