"""What the handlers of cluster metadata see of a broker: a controller and logs in memory, no network."""

from types import SimpleNamespace
from typing import Any

from odradek.broker.config import load
from odradek.broker.context import RequestContext, Session
from odradek.broker.handlers import SERVED, load_handler
from odradek.broker.metadata.controller import Controller
from odradek.broker.metadata.decisions import NewTopic
from odradek.broker.metadata.metadata_log import MetadataLog
from odradek.broker.metadata.publishing import PublishingOrder
from odradek.broker.replica.housekeeping import Housekeeping
from odradek.broker.replica.partition_directories import PartitionDirectories
from odradek.broker.replica.partitions import Partitions
from odradek.broker.replica.replica_moves import ReplicaMoves
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.protocol.records import Record, build_batch
from odradek.protocol.responses import response_encoder
from odradek.storage.log_manager import LogManager
from odradek.storage.memory_filesystem import MemoryFileSystem
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from odradek.timing.purgatory import Purgatory
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer


def make_broker(**overrides: str) -> Any:
    """A broker of node id 1 whose listener is at 127.0.0.1:9999; ``overrides`` are configs, with ``_`` for dots."""
    file_system, clock = MemoryFileSystem(), VirtualClock()
    config = load(overrides={name.replace("_", "."): value for name, value in overrides.items()})
    log_manager = LogManager(file_system, "/data", node_id=1, warn=lambda event, **_: None)
    identity = log_manager.start()
    log = MetadataLog.open(file_system, "/data", now_ms=clock.now_ms(), warn=lambda event, **_: None)
    controller = Controller(log, node_id=1, directory_counts=log_manager.counts, config=config, clock=clock)
    timer = Timer(clock)
    broker = SimpleNamespace(
        advertised=lambda _: ("127.0.0.1", 9999),
        clock=clock,
        cluster_id=identity.cluster_id,
        config=config,
        controller=controller,
        fetch_purgatory=Purgatory("Fetch", timer),
        housekeeping=Housekeeping(config, log_manager, timer, InlineBackground()),
        log_manager=log_manager,
        node_id=1,
        partitions=Partitions(),
        rack=config["broker.rack"],
        timer=timer,
    )
    broker.moves = ReplicaMoves(broker)  # type: ignore[arg-type]
    controller.subscribe(
        PartitionDirectories(
            broker.partitions,
            log_manager,
            controller.image,
            node_id=1,
            clock=clock,
            log_config_for=controller.log_config_for,
            wake_fetches=broker.fetch_purgatory.check_and_complete,
            before_delete=broker.moves.cancel,
            after_delete=lambda: broker.housekeeping.remove_deleted_after(config["log.segment.delete.delay.ms"]),
        ),
        PublishingOrder.PARTITIONS,
    )
    return broker


def create(broker: Any, name: str, partition_count: int = 1, *configs: tuple[str, str], records: int = 0) -> Any:
    """A topic with ``records`` records in partition 0; returns it as the image has it."""
    (result,) = broker.controller.create_topics([NewTopic(name=name, partition_count=partition_count, configs=configs)]).response
    assert result.error is None
    topic = broker.controller.image.topics[name]
    for _ in range(records):
        broker.partitions.get(name, 0).append(build_batch([Record(timestamp=0, value=b"v")]), broker.clock.now_ms())
    return topic


def ask(broker: Any, api_key: ApiKey, version: int | None = None, **fields: Any) -> Any:
    """The answer to a request of ``version``, the newest served by default; it can be encoded in the older ones, too."""
    served = SERVED[api_key]
    version = served.max_version if version is None else version
    context = RequestContext(api_key, version, 7, "client", Session("PLAINTEXT", ("127.0.0.1", 1)))
    response = load_handler(api_key)(broker, context, messages(api_key).request(**fields))
    if isinstance(response, Reply):
        assert response.done
        response = response.response
    for each in range(oldest_version(api_key, version), served.max_version + 1):
        assert response_encoder(api_key, each)(7, response)
    return response


def oldest_version(api_key: ApiKey, version: int) -> int:
    """The oldest version in which the answer to a request of ``version`` can be said."""
    # One key in, one out before version 4 of FindCoordinator; a topic without a name only in version 6 of DeleteTopics.
    first_of_shape = {ApiKey.FIND_COORDINATOR: 4, ApiKey.DELETE_TOPICS: 6}.get(api_key, 0)
    return first_of_shape if version >= first_of_shape > 0 else SERVED[api_key].min_version
