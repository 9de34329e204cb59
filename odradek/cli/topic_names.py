"""Topics by name, and the names that a wrong one resembles."""

from collections.abc import Sequence

from odradek.cli.cluster import Cluster, Refused
from odradek.cli.options import did_you_mean
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.metadata import MetadataResponseTopic


def known_topics(cluster: Cluster, names: Sequence[str]) -> tuple[list[MetadataResponseTopic], list[Refused]]:
    """Return the topics that exist, and a refusal for each of the others."""
    found = cluster.metadata(dict.fromkeys(names))
    refused = [unknown_topic(cluster, str(topic.name), topic.error_code) for topic in found if topic.error_code]
    return [topic for topic in found if not topic.error_code], refused


def unknown_topic(cluster: Cluster, name: str, code: int, message: str | None = None) -> Refused:
    """Return the refusal of a topic. One that does not exist gets the names that it resembles."""
    if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return Refused(name, code, message)
    known = [str(topic.name) for topic in cluster.metadata(None)]
    similar = did_you_mean(name, known)
    return Refused(name, code, f"there is no such topic or partition{similar}" if similar else message)
