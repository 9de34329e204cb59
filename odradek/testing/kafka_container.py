"""A class with the face of Testcontainers' ``KafkaContainer``: a suite changes one import, and needs no Docker.

    from odradek.testing import KafkaContainer          # was: from testcontainers.kafka import KafkaContainer

The image and whatever else is a container's own is taken and not used. ``KAFKA_`` variables become configs, but for those that
say where to listen and where the data lies. What would need a container (``exec``, ``get_wrapped_container``, a network for
others) raises NotImplementedError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

from odradek.testing.threaded import Broker

if TYPE_CHECKING:
    from types import TracebackType

    from odradek.testing.threaded import ThreadedBroker

__tracebackhide__ = True

_HOST = "127.0.0.1"
_PREFIX = "KAFKA_"
# What Testcontainers sets, as far as it is not about where to listen.
_ENVIRONMENT = {"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1", "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0"}
# Configs that belong to the container; the last ones are options of the JVM.
_NOT_TAKEN = (
    "advertised.",
    "broker.id",
    "cluster.id",
    "controller.",
    "inter.broker.listener.",
    "listener.",
    "listeners",
    "log.dir",
    "metadata.log.dir",
    "node.id",
    "process.roles",
    "zookeeper.",
    "heap.opts",
    "jmx.",
    "jvm.",
    "log4j.",
    "opts",
)


class KafkaContainer:
    """One broker in this process. ``broker`` has the helpers of ``ThreadedBroker`` while it runs."""

    def __init__(self, image: str = "", port: int = 9093, *, env: dict[str, str] | None = None, **_kwargs: object) -> None:
        self.image = image
        self.port = port
        self.env = {**_ENVIRONMENT, **(env or {})}
        self._host_port = 0
        self._owner: Broker | None = None
        self._broker: ThreadedBroker | None = None

    @property
    def broker(self) -> ThreadedBroker:
        """The broker that runs. Raises RuntimeError where none does."""
        if self._broker is None:
            raise RuntimeError("the broker has not been started: container.start(), or with KafkaContainer() as container")
        return self._broker

    def start(self, timeout: float = 30) -> Self:  # noqa: ARG002  it starts or fails in milliseconds
        """Start the broker, which can be used when this returns."""
        if self._owner is None:
            # Images take variables that are no configs.
            owner = Broker(configs=self._configs(), has_own_configs=False)
            self._broker = owner.__enter__()
            self._owner = owner
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:  # noqa: ARG002  nothing is kept
        """Stop the broker; nothing of it is left."""
        owner, self._owner, self._broker = self._owner, None, None
        if owner is not None:
            owner.__exit__(None, None, None)

    def get_bootstrap_server(self) -> str:
        """Where clients connect to, "127.0.0.1:54321"."""
        return self.broker.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Where the port is."""
        return _HOST

    def get_exposed_port(self, port: int) -> int:  # noqa: ARG002  there is one
        """The port on which the broker listens."""
        return int(self.get_bootstrap_server().rpartition(":")[2])

    def get_logs(self) -> tuple[bytes, bytes]:
        """The broker's log, and nothing on stderr."""
        return "".join(f"{line}\n" for line in self.broker.log).encode(), b""

    def with_env(self, key: str, value: str) -> Self:
        """Set a config: ``KAFKA_AUTO_CREATE_TOPICS_ENABLE`` is ``auto.create.topics.enable``. Other variables have no use."""
        self.env[key] = value
        return self

    def with_envs(self, **variables: str) -> Self:
        """Set several."""
        self.env.update(variables)
        return self

    def with_bind_ports(self, container: int | str, host: int | str | None = None) -> Self:  # noqa: ARG002  there is one
        """Listen on the port ``host`` of this machine, and not on a free one."""
        self._host_port = int(host or 0)
        return self

    def with_kraft(self) -> Self:
        """It is without ZooKeeper anyhow."""
        return self

    def with_network(self, network: object) -> NoReturn:
        """Other containers would look for the broker in it."""
        raise NotImplementedError(f"no container can reach a broker in this process by the network {network!r}")

    def exec(self, command: object) -> NoReturn:
        """There is no shell."""
        raise NotImplementedError(f"there is no container to run {command!r} in; broker has topics, groups and records")

    def get_wrapped_container(self) -> NoReturn:
        """There is none."""
        raise NotImplementedError("there is no container")

    def __getattr__(self, name: str) -> Any:
        """Whatever else is set on a container (``with_name``, ``with_exposed_ports``, ``with_command``) is taken and not used."""
        if not name.startswith(("with_", "waiting_for", "maybe_")):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        return self._take

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def _take(self, *_args: object, **_kwargs: object) -> Self:
        return self

    def _configs(self) -> dict[str, str]:
        configs = {_config_name(name): value for name, value in self.env.items() if name.startswith(_PREFIX)}
        taken = {name: value for name, value in configs.items() if not name.startswith(_NOT_TAKEN)}
        return {**taken, "listeners": f"PLAINTEXT://{_HOST}:{self._host_port}"} if self._host_port else taken


def _config_name(variable: str) -> str:
    """As Kafka's images write it: "_" for a dot, "__" for "_", "___" for "-"."""
    name = variable.removeprefix(_PREFIX).lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
