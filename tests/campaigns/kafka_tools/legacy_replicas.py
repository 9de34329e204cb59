"""Logs of message formats v0 and v1 (``legacy_logs``) on a leader, and a follower that has none: all pairs of odradek and Kafka.

The leader's logs are put into its directory while all brokers are down. The follower fetches them, is killed, misses records that
a producer sends, and comes back. Then its .log files have the leader's bytes, and its leader epochs begin behind the old formats.
"""

from pathlib import Path

from odradek.storage.directories.checkpoints import CLEAN_SHUTDOWN_FILE
from odradek.storage.log.leader_epochs import FILE_NAME as LEADER_EPOCHS_FILE
from tests.campaigns.kafka_tools import legacy_logs as logs
from tests.campaigns.kafka_tools.cleaned import CleanedComparison
from tests.campaigns.mixed_clusters.cluster import MixedCluster

_KAFKA, _ODRADEK = (11, 12), (21, 22)
_LEADERS, _FOLLOWERS = zip(_KAFKA, _ODRADEK, strict=True)
_TOPICS = (*logs.FORMATS, *logs.STAMPED, "mixed", "mismatched")
_PAIRS = {f"from-{leader}-to-{follower}": (leader, follower) for leader in _LEADERS for follower in _FOLLOWERS}


def compare_replicas(scratch: Path) -> CleanedComparison:
    """Run it; ``records`` of what is returned counts bytes, ``partitions`` replicas."""
    cluster = MixedCluster(scratch, kafka=_KAFKA, odradek=_ODRADEK, is_kafkas_controller=False)
    try:
        return _compare(cluster)
    finally:
        cluster.close()


def _compare(cluster: MixedCluster) -> CleanedComparison:
    comparison = CleanedComparison()
    cluster.begin()
    for name, pair in _PAIRS.items():
        cluster.create(name, [list(pair)] * len(_TOPICS), retention_ms="-1")
    for node_id in (*_FOLLOWERS, *_LEADERS):
        cluster.stop(node_id)
        # The logs are not those that it has left.
        (cluster.data(node_id) / CLEAN_SHUTDOWN_FILE).unlink(missing_ok=True)
    for name, (leader, follower) in _PAIRS.items():
        for number, topic in enumerate(_TOPICS):
            logs.put_segments(cluster.data(leader) / f"{name}-{number}", logs.segments_of(topic, 0))
            logs.put_segments(cluster.data(follower) / f"{name}-{number}", [])
    for node_id in (*_LEADERS, *_FOLLOWERS):
        cluster.start(node_id)
    cluster.until(cluster.all_in_sync)
    for node_id in _FOLLOWERS:
        cluster.kill9(node_id)
    for name in _PAIRS:
        cluster.produce(name, (b"%d" % number for number in range(10 * len(_TOPICS))), len(_TOPICS))
    for node_id in _FOLLOWERS:
        cluster.start(node_id)
    cluster.until(cluster.all_in_sync)
    for node_id in (*_FOLLOWERS, *_LEADERS):
        cluster.stop(node_id)
    for name, pair in _PAIRS.items():
        for number, topic in enumerate(_TOPICS):
            leader, follower = (cluster.data(node_id) / f"{name}-{number}" for node_id in pair)
            _compare_replicas(comparison, f"{name}: {topic}", leader, follower)
    return comparison


def _compare_replicas(comparison: CleanedComparison, what: str, leader: Path, follower: Path) -> None:
    contents = [b"".join(file.read_bytes() for file in sorted(side.glob("*.log"))) for side in (leader, follower)]
    comparison.partitions += 1
    comparison.records += len(contents[0])
    comparison.expect_same(f"{what}: the follower's bytes", contents[1].hex(), contents[0].hex())
    # What was written in the old formats has no epoch.
    newest = [(side / LEADER_EPOCHS_FILE).read_text(encoding="ascii").splitlines()[-1] for side in (leader, follower)]
    comparison.expect_same(f"{what}: the newest epoch", *reversed(newest))
