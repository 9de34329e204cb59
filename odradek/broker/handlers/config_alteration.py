"""What AlterConfigs and IncrementalAlterConfigs share: each resource of a request is altered, and answered, by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.config.dynamic import ConfigView
from odradek.broker.metadata.alterations import Alteration, Answer, alter_resources
from odradek.broker.metadata.features import ELIGIBLE_LEADER_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.broker.handlers.services import TopicServices
    from odradek.timing.reply import Reply


def alter(services: TopicServices, alterations: Sequence[Alteration], *, validate_only: bool) -> Reply[list[Answer]]:
    """Carry out each alteration, or only validate it; (error code, message) of each."""
    image = services.controller.image
    return alter_resources(
        ConfigView(
            services.config, image.configs, image.topics.__contains__, has_elr=image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0
        ),
        alterations,
        None if validate_only else services.controller.alter_configs,
    )
