"""Topics that a test names: made at the start of a broker, or when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.testing.misuse import checked_topics, config_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.protocol.message_types.create_topics import CreateTopicsResponse
    from odradek.testing.in_process import InProcessBroker

__tracebackhide__ = True

_CREATE_TOPICS_VERSION = 7
_DEFAULT = -1


class NewTopic(NamedTuple):
    """A topic to be made. Without ``partitions`` it has as many as ``num.partitions`` says."""

    partitions: int | None = None
    configs: Mapping[str, object] = {}


async def create_topics(broker: InProcessBroker, topics: Mapping[str, int | NewTopic | None]) -> None:
    """Make the topics that are not there, each with a number of partitions or as its ``NewTopic`` says.

    Those that are there stay as they are. Raises the KafkaError of the first one that is refused.
    """
    known = broker.core.controller.image.topics
    asked = [_asked(name, topic) for name, topic in checked_topics(topics).items() if name not in known]
    if not asked:
        return
    response: CreateTopicsResponse = await broker.ask(
        ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=asked), _CREATE_TOPICS_VERSION
    )
    for topic in response.topics:
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(ErrorCode(topic.error_code), f"topic {topic.name!r}: {topic.error_message}")


def _asked(name: str, topic: int | NewTopic | None) -> CreatableTopic:
    new = topic if isinstance(topic, NewTopic) else NewTopic(topic)
    return CreatableTopic(
        name=name,
        num_partitions=_DEFAULT if new.partitions is None else new.partitions,
        replication_factor=_DEFAULT,
        configs=[CreatableTopicConfig(config, text) for config, text in config_texts(new.configs).items()],
    )
