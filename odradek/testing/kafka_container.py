"""A class with the interface of Testcontainers' ``KafkaContainer``: a suite changes one import, and needs no Docker.

    from odradek.testing import KafkaContainer          # was: from testcontainers.kafka import KafkaContainer

The image and other settings of containers are accepted and ignored. ``KAFKA_`` variables become configs, except those for
listeners and data directories. Methods that need a container (``exec``, ``get_wrapped_container``, ``with_network``) raise
NotImplementedError.
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
# Testcontainers sets these; its listener variables are left out.
_ENVIRONMENT = {"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1", "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0"}
# Configs that belong to the container; the last ones are JVM options.
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
    """One broker in this process. While it runs, ``broker`` has the helpers of ``ThreadedBroker``."""

    def __init__(self, image: str = "", port: int = 9093, *, env: dict[str, str] | None = None, **_kwargs: object) -> None:
        self.image = image
        self.port = port
        self.env = {**_ENVIRONMENT, **(env or {})}
        self._host_port = 0
        self._owner: Broker | None = None
        self._broker: ThreadedBroker | None = None

    @property
    def broker(self) -> ThreadedBroker:
        """Return the running broker. Raises RuntimeError if none runs."""
        if self._broker is None:
            raise RuntimeError(
                "the broker has not been started: call container.start(), or use with KafkaContainer() as container"
            )
        return self._broker

    def start(self, timeout: float = 30) -> Self:  # noqa: ARG002  it starts or fails in milliseconds
        """Start the broker. It is ready when this returns."""
        if self._owner is None:
            # Images take variables that are no Kafka configs.
            owner = Broker(configs=self._configs(), has_own_configs=False)
            self._broker = owner.__enter__()
            self._owner = owner
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:  # noqa: ARG002  nothing is kept
        """Stop the broker and drop its data."""
        owner, self._owner, self._broker = self._owner, None, None
        if owner is not None:
            owner.__exit__(None, None, None)

    def get_bootstrap_server(self) -> str:
        """Return the bootstrap address, such as "127.0.0.1:54321"."""
        return self.broker.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Return the host of the port."""
        return _HOST

    def get_exposed_port(self, port: int) -> int:  # noqa: ARG002  there is one
        """Return the port on which the broker listens."""
        return int(self.get_bootstrap_server().rpartition(":")[2])

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return the broker's log as stdout, and an empty stderr."""
        return "".join(f"{line}\n" for line in self.broker.log).encode(), b""

    def with_env(self, key: str, value: str) -> Self:
        """Set a config: ``KAFKA_AUTO_CREATE_TOPICS_ENABLE`` is ``auto.create.topics.enable``. Other variables are ignored."""
        self.env[key] = value
        return self

    def with_envs(self, **variables: str) -> Self:
        """Set several configs."""
        self.env.update(variables)
        return self

    def with_bind_ports(self, container: int | str, host: int | str | None = None) -> Self:  # noqa: ARG002  there is one
        """Listen on the port ``host`` of this machine instead of a free one."""
        self._host_port = int(host or 0)
        return self

    def with_kraft(self) -> Self:
        """Do nothing: the broker never uses ZooKeeper."""
        return self

    def with_network(self, network: object) -> NoReturn:
        """Raise NotImplementedError: other containers would look for the broker in this network."""
        raise NotImplementedError(f"containers of the network {network!r} cannot reach a broker in this process")

    def exec(self, command: object) -> NoReturn:
        """Raise NotImplementedError: there is no shell."""
        raise NotImplementedError(
            f"cannot run {command!r}: there is no container; use container.broker for topics, groups and records"
        )

    def get_wrapped_container(self) -> NoReturn:
        """Raise NotImplementedError: there is no container."""
        raise NotImplementedError("there is no container: the broker runs in this process")

    def __getattr__(self, name: str) -> Any:
        """Accept and ignore other settings of a container (``with_name``, ``with_exposed_ports``, ``with_command``)."""
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
    """Return the config's name by the rule of Kafka's images: "_" for a dot, "__" for "_", "___" for "-"."""
    name = variable.removeprefix(_PREFIX).lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
