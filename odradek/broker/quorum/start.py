"""Opens what an observer is made of, on a data directory that may be empty."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.publishing import Publishers
from odradek.broker.quorum.election_file import ElectionFile
from odradek.broker.quorum.fetch_messages import ObserverIdentity
from odradek.broker.quorum.followed_log import FollowedLog
from odradek.broker.quorum.image_follower import ImageFollower, Snapshots
from odradek.broker.quorum.leader_discovery import Election, LeaderDiscovery, QuorumNode
from odradek.broker.quorum.observer import MetadataObserver, ObserverConfig, ObserverHost
from odradek.storage.log_config import LogConfig


class OpenObserver(NamedTuple):
    """The copy of the log, what follows it, and what fetches it: ``observer.run()`` begins."""

    log: FollowedLog
    follower: ImageFollower
    observer: MetadataObserver


def open_observer(
    host: ObserverHost,
    identity: ObserverIdentity,
    nodes: Sequence[QuorumNode],
    *,
    data_dir: str,
    image: MetadataImage,
    publishers: Publishers,
    make_snapshots: Callable[[FollowedLog], Snapshots],
    config: ObserverConfig,
    log_config: LogConfig,
) -> OpenObserver:
    """Open the copy in ``data_dir``, and an observer of the quorum that has ``nodes``.

    Raises LogCorrupt, OSError, ValueError (quorum-state), KafkaError.
    """
    clock = host.timer.clock
    log = FollowedLog.open_copy(host.file_system, data_dir, now_ms=clock.now_ms(), warn=host.warn, config=log_config)
    elections = ElectionFile(host.file_system, log.directory)
    election = elections.read()
    if election.epoch < log.last_fetched_epoch:
        election = Election(log.last_fetched_epoch)
    discovery = LeaderDiscovery(
        nodes,
        election,
        host.random,
        fetch_timeout_ms=config.fetch_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        now_ms=clock.monotonic_ms(),
    )
    follower = ImageFollower(log, image, publishers, make_snapshots(log))
    observer = MetadataObserver(identity, log, follower, discovery, elections, host, config)
    return OpenObserver(log, follower, observer)
