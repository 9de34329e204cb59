"""``odradek cluster``: start a cluster on this machine. Look at it, kill and restart its nodes from another shell."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from odradek.cli.local_cluster.control import SOCKET_NAME, NoCluster, ask, is_served, listen
from odradek.cli.local_cluster.node import DECIDED, MAX_BROKERS, PortTaken, ReservedPorts, plan_cluster
from odradek.cli.options import CannotWork, key_and_value, show
from odradek.storage.directories import checkpoints
from odradek.storage.filesystem import Lock, RealFileSystem

_TEMPORARY = "odradek-cluster-"
_MAX_PORT = 65_535
_COLUMNS = ("node", "role", "address", "pid", "state", "fenced", "leaders")


_of_directory = click.option(
    "--data-dir", type=click.Path(path_type=Path), help="The cluster's directory.  [default: the only cluster without --data-dir]"
)


@click.group(invoke_without_command=True)
@click.option("--brokers", type=click.IntRange(1, MAX_BROKERS), default=3, show_default=True, help="Number of brokers.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="The cluster's directory.  [default: removed at the end]")
@click.option(
    "--port",
    type=click.IntRange(0, _MAX_PORT),
    default=9092,
    show_default=True,
    help="Port of the first broker; the others get the next ports. 0 takes free ones.",
)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, callback=key_and_value, help="One config; repeatable.")
@click.option("--set-broker", "of_broker", metavar="N:KEY=VALUE", multiple=True, help="One config of broker N alone; repeatable.")
@click.option("--racks", metavar="RACK,RACK,...", help="The rack of each broker (broker.rack); the list repeats.")
@click.pass_context
def cluster(
    context: click.Context,
    brokers: int,
    data_dir: Path | None,
    port: int,
    settings: dict[str, str],
    of_broker: tuple[str, ...],
    racks: str | None,
) -> int:
    """Run a controller and brokers on this machine, a process each, until SIGTERM or SIGINT.

    When every broker knows all others, one line on stdout says: odradek cluster ready on HOST:PORT,HOST:PORT,HOST:PORT. It is
    for tests of failover. If a cluster must survive the loss of its controller, use Apache Kafka's controllers.
    """
    if context.invoked_subcommand is not None:
        return 0
    _ensure_undecided("--set", settings)
    if port and port + brokers - 1 > _MAX_PORT:
        raise click.UsageError(f"--port {port} leaves no room for {brokers} brokers")
    wanted = [0, *(port + index if port else 0 for index in range(brokers))]
    return _run(data_dir, wanted, settings, _settings_of_brokers(brokers, of_broker, racks))


def _ensure_undecided(option: str, names: Iterable[str]) -> None:
    for name in names:
        if name in DECIDED:
            raise click.UsageError(f"{option} cannot set {name}: odradek cluster sets it itself")


def _settings_of_brokers(brokers: int, asked: Sequence[str], racks: str | None) -> dict[int, dict[str, str]]:
    """Return the settings of ``--racks`` and ``--set-broker``, by broker. Raises UsageError."""
    found: dict[int, dict[str, str]] = {}
    if racks is not None:
        names = [name.strip() for name in racks.split(",")]
        if not all(names):
            raise click.UsageError(f"--racks {racks}: a rack has no name")
        found = {number: {"broker.rack": names[(number - 1) % len(names)]} for number in range(1, brokers + 1)}
    for text in asked:
        number, colon, setting = text.partition(":")
        key, equals, value = setting.partition("=")
        key = key.strip()
        if not (colon and equals and key and number.isdecimal()):
            raise click.UsageError(f"--set-broker {text}: not of the form N:KEY=VALUE")
        if not 1 <= int(number) <= brokers:
            raise click.UsageError(f"--set-broker {text}: there is no broker {number}, only 1 to {brokers}")
        _ensure_undecided("--set-broker", [key])
        found.setdefault(int(number), {})[key] = value.strip()
    return found


@cluster.command()
@_of_directory
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def status(data_dir: Path | None, as_json: bool) -> int:
    """List every node: its process, and its state in the cluster."""
    nodes = _ask(data_dir, {"do": "status"})["nodes"]
    fenced, leaders = _known_to_cluster(nodes)
    for node in nodes:
        is_broker = node["role"] == "broker"
        node["fenced"] = fenced.get(node["node"]) if is_broker else None
        node["leaders"] = leaders[node["node"]] if is_broker and leaders is not None else None
    show(_COLUMNS, nodes, as_json=as_json)
    return 0


@cluster.command()
@click.argument("node", type=click.IntRange(0))
@_of_directory
def kill(node: int, data_dir: Path | None) -> int:
    """End a node as a crash does (kill -9)."""
    return _done(_ask(data_dir, {"do": "kill", "node": node}))


@cluster.command()
@click.argument("node", type=click.IntRange(0))
@_of_directory
def start(node: int, data_dir: Path | None) -> int:
    """Start a node that is down, with its old port and directory. Returns when it is ready."""
    return _done(_ask(data_dir, {"do": "start", "node": node}))


def _run(
    data_dir: Path | None, wanted_ports: Sequence[int], settings: dict[str, str], of_broker: dict[int, dict[str, str]]
) -> int:
    try:
        import fcntl  # noqa: F401
    except ImportError:
        reason = "a cluster needs Linux or macOS: on Windows run it in WSL, or in a container"
        raise click.UsageError(reason) from None
    from odradek.cli.local_cluster.forked import Forks, import_all
    from odradek.cli.local_cluster.supervisor import HANDLED_SIGNALS, Supervisor
    from odradek.cli.serve_node import usable_cores
    from odradek.timing.system_clock import SystemClock

    with ExitStack() as stack:
        if data_dir is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_TEMPORARY)))
        else:
            directory = data_dir.absolute()
        try:
            directory.mkdir(0o700, parents=True, exist_ok=True)
            ports = stack.enter_context(ReservedPorts(wanted_ports))
            listening = stack.enter_context(listen(directory))
            stack.callback((directory / SOCKET_NAME).unlink, missing_ok=True)
            lock = _lock(directory)
            stack.callback(lock.release)
        except (PortTaken, OSError) as error:
            raise CannotWork(str(error)) from error
        controller_port, *broker_ports = ports.numbers
        forks = Forks(HANDLED_SIGNALS)
        plans = plan_cluster(directory, controller_port, broker_ports, settings, of_broker, cores=usable_cores())
        supervisor = Supervisor(plans, forks.launch, listening, SystemClock())

        def forget() -> None:
            supervisor.release()
            ports.close()
            lock.release()

        forks.on_fork = forget
        import_all()
        return supervisor.run()


def _lock(directory: Path) -> Lock:
    """Lock the directory, as a broker locks its own. Raises OSError if a broker uses it, or has used it."""
    if (directory / checkpoints.META_PROPERTIES_FILE).exists():
        raise OSError(
            f"{directory} has the data of a single broker: run odradek serve --data-dir {directory}, or choose another directory"
        )
    try:
        return RealFileSystem().lock(str(directory / checkpoints.LOCK_FILE))
    except BlockingIOError as error:
        raise OSError(f"{directory} is in use by a broker: stop it, or choose another directory") from error


def _ask(data_dir: Path | None, request: dict[str, object]) -> dict[str, Any]:
    try:
        return ask(data_dir.absolute() if data_dir else _only_temporary(), request)
    except NoCluster as error:
        raise CannotWork(str(error)) from error


def _only_temporary() -> Path:
    """Return the directory of the only cluster without ``--data-dir``."""
    places = sorted(Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*/{SOCKET_NAME}"))
    running = [place.parent for place in places if is_served(place.parent)]
    if not running:
        raise CannotWork("no cluster without --data-dir is running; name your cluster's directory with --data-dir")
    if len(running) > 1:
        raise CannotWork(f"several clusters are running: choose one with --data-dir: {', '.join(map(str, running))}")
    return running[0]


def _done(answer: dict[str, Any]) -> int:
    if "refused" in answer:
        raise click.ClickException(str(answer["refused"]))
    click.echo(answer["done"])
    return 0


def _known_to_cluster(nodes: Sequence[dict[str, Any]]) -> tuple[dict[int, bool], Counter[int] | None]:
    """Return by node id whether it is fenced, and how many partitions it leads; ({}, None) if no broker can be asked."""
    from odradek.cli.cluster import Cluster, Unreachable
    from odradek.client.admin_apis import DESCRIBE_CLUSTER
    from odradek.protocol.message_types.describe_cluster import DescribeClusterRequest

    running = [node["address"].rpartition(":") for node in nodes if node["role"] == "broker" and node["state"] == "running"]
    if not running:
        return {}, None
    try:
        with Cluster([(host, int(port)) for host, _, port in running]) as asked:
            described = asked.any.call(DESCRIBE_CLUSTER, DescribeClusterRequest(include_fenced_brokers=True))
            partitions = [partition for topic in asked.metadata(None) for partition in topic.partitions]
    except Unreachable:
        return {}, None
    fenced = {int(broker.broker_id): bool(broker.is_fenced) for broker in described.brokers}
    return fenced, Counter(int(partition.leader_id) for partition in partitions)
