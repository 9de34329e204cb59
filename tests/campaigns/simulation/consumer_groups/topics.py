"""The topics of a history, which its broker really has: created, grown, deleted, and made anew under the same name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.broker.metadata.decisions import NewPartitions, NewTopic

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random
    from uuid import UUID

    from odradek.broker.metadata.controller import Controller

MOST_PARTITIONS = 8


class Topics:
    """``ids`` by name, ``names`` by id, of what there is now."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.ids: dict[str, UUID] = {}
        self.names: dict[UUID, str] = {}
        self._look()

    def _look(self) -> None:
        topics = self._controller.image.topics
        self.ids = {name: topic.topic_id for name, topic in topics.items()}
        self.names = {topic_id: name for name, topic_id in self.ids.items()}

    def count(self, name: str) -> int:
        """How many partitions there are; 0 for a topic that is not there."""
        topic = self._controller.image.topics.get(name)
        return 0 if topic is None else len(topic.partitions)

    def matching(self, pattern: str) -> list[str]:
        """The topics that a regular expression matches as a whole."""
        return [name for name in self.ids if re.fullmatch(pattern, name)]

    def create(self, name: str, count: int) -> None:
        """Make a topic."""
        self._controller.create_topics([NewTopic(name=name, partition_count=count)])
        self._look()

    def grow(self, name: str, rng: Random) -> None:
        """Give a topic more partitions."""
        count = self.count(name)
        if 0 < count < MOST_PARTITIONS:
            self._controller.create_partitions(
                [NewPartitions(name=name, partition_count=rng.randint(count + 1, MOST_PARTITIONS))]
            )

    def delete(self, names: Iterable[str]) -> None:
        """Delete topics, and what groups have committed for them."""
        self._controller.delete_topics([self.ids[name] for name in names])
        self._look()
