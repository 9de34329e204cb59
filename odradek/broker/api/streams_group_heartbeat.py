"""StreamsGroupHeartbeat, versions 0 and 1: a member joins a streams group, stays in it, or leaves it (KIP-1071).

Version 1 has the acceptable recovery lag as a long, and the status MISSING_CLIENT_TAGS. The decisions are made in
``coordinator.group.streams.heartbeat``. Internal topics that are missing are created after the answer. UNSUPPORTED_VERSION if the
feature streams.version is at 0, or ``streams`` is not in group.coordinator.rebalance.protocols.

Deliberate gap: no plugin for topology descriptions (KIP-1331), so version 1 never asks for one.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from odradek.common.acls import AclOperation, AclResourceType
from odradek.controller.metadata.features import STREAMS_VERSION
from odradek.controller.metadata.topic import INTERNAL_TOPICS, topic_name_error
from odradek.coordinator.group.config import MemberContext
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import GroupProtocolServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.common.context import RequestContext
    from odradek.coordinator.group.streams.leave import HeartbeatOutcome
    from odradek.timing.reply import Reply

has_unbounded_response = True

_MISSING_INTERNAL_TOPICS = 3
# An error of a topic's creation is told in the next heartbeat, and is old after the one behind it.
_HEARTBEATS_WITH_ERRORS = 2


def is_served(services: "GroupProtocolServices") -> bool:
    """Return whether streams groups are on."""
    is_on = services.controller.image.features.get(STREAMS_VERSION, 0) >= 1
    return is_on and "streams" in services.config["group.coordinator.rebalance.protocols"]


def _no_topic(_names: Collection[str]) -> set[str]:
    return set()


def handle(
    services: "GroupProtocolServices",
    context: "RequestContext",
    request: StreamsGroupHeartbeatRequest,
    uncreatable: Callable[[Collection[str]], set[str]] = _no_topic,
) -> "StreamsGroupHeartbeatResponse | Reply[StreamsGroupHeartbeatResponse]":
    """Hand the request to its group's shard. HOT.

    ``uncreatable`` returns the topics that the client may not create. Without it, the client may create all.
    """
    if not is_served(services):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if request.topology is not None:
        problem = _problem(named_topics(request.topology))
        if problem is not None:
            return StreamsGroupHeartbeatResponse(error_code=ErrorCode.STREAMS_INVALID_TOPOLOGY, error_message=problem)
    member = MemberContext(context.client_id or "", f"/{context.peer[0]}", context.version)
    reply = services.groups.runtime.write(request.group_id, lambda shard: shard.streams_group_heartbeat(member, request))
    return reply.then(partial(_response, services, context, uncreatable))


def named_topics(topology: Topology) -> list[str]:
    """Return the topics of a topology, each once."""
    found: dict[str, None] = {}
    for subtopology in topology.subtopologies:
        found.update(dict.fromkeys(subtopology.source_topics))
        found.update(dict.fromkeys(subtopology.repartition_sink_topics))
        found.update(dict.fromkeys(topic.name for topic in subtopology.repartition_source_topics))
        found.update(dict.fromkeys(topic.name for topic in subtopology.state_changelog_topics))
    return list(found)


def _problem(names: Collection[str]) -> str | None:
    """Return why a topology cannot have these topics, or None."""
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        return f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
    invalid = [name for name in names if topic_name_error(name) is not None]
    return f"Topic names {','.join(invalid)} are not valid topic names." if invalid else None


def _response(
    services: "GroupProtocolServices",
    context: "RequestContext",
    uncreatable: Callable[[Collection[str]], set[str]],
    outcome: "HeartbeatOutcome | KafkaError",
) -> StreamsGroupHeartbeatResponse:
    if isinstance(outcome, KafkaError):
        return StreamsGroupHeartbeatResponse(error_code=outcome.code, error_message=outcome.reason or None)
    response, missing = outcome
    if not missing:
        return response
    refused = uncreatable([topic.name for topic in missing])
    if refused:
        return _with_detail(response, f"Unauthorized to CREATE on topics {', '.join(sorted(refused))}.")
    topics = services.groups.streams_internal_topics
    topics.create(missing, context, response.heartbeat_interval_ms * _HEARTBEATS_WITH_ERRORS)
    errors = topics.errors(missing)
    if not errors:
        return response
    told = ", ".join(f"{name} ({reason})" for name, reason in sorted(errors.items()))
    return _with_detail(response, f"Creation failed: {told}.")


def _with_detail(response: StreamsGroupHeartbeatResponse, detail: str) -> StreamsGroupHeartbeatResponse:
    """Return the response with more detail on its missing internal topics."""
    statuses = [
        status._replace(status_detail=f"{status.status_detail}; {detail}")
        if status.status_code == _MISSING_INTERNAL_TOPICS
        else status
        for status in response.status or ()
    ]
    return response._replace(status=statuses)


def rule(guarded: "GuardedRequest") -> object:
    """Require READ on the group, DESCRIBE on each topic of the topology, and CREATE on internal topics that are missing."""
    if not is_served(guarded.services):
        return guarded.handle()
    request = guarded.request
    if not guarded.allows(AclOperation.READ, AclResourceType.GROUP, request.group_id):
        return guarded.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    names = [] if request.topology is None else named_topics(request.topology)
    if names and _problem(names) is None:
        seen = guarded.access.allowed(AclOperation.DESCRIBE, AclResourceType.TOPIC, names)
        if len(seen) < len(names):
            return guarded.refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def uncreatable(topics: Collection[str]) -> set[str]:
        if guarded.access.allows_cluster(AclOperation.CREATE, tells=False):
            return set()
        return set(topics) - guarded.access.allowed(AclOperation.CREATE, AclResourceType.TOPIC, topics)

    return handle(guarded.services, guarded.context, request, uncreatable)
