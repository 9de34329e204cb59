"""Warnings at the start about users and secrets: nothing is wrong yet, but the operator should know.

The log of a node's metadata has passwords in altered configs, and SCRAM verifiers. The records beside it are worth a login where
listeners ask for one. So other users of the machine should not read the directories. The broker makes its directories for their
owner only; existing ones keep their mode.
"""

from __future__ import annotations

import os
import shlex
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.common.config.dynamic import ResourceType, definition_of
from odradek.common.config.listener_config import PLAINTEXT, SASL_PROTOCOLS, parse_endpoints, security_protocols_of
from odradek.common.logging import log
from odradek.protocol.scram import MECHANISMS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.controller.metadata.image import MetadataImage

_BY_OTHERS: Final = stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH
_ADD_USER: Final = (
    "stop the broker, and create a user with odradek format --add-scram-file in a new data directory. In this one, start once "
    "with a PLAINTEXT listener on 127.0.0.1 and use odradek users add"
)


def warn_of_readable_directories(config: BrokerConfig, image: MetadataImage, paths: Iterable[str]) -> None:
    """Log one warning if other users can read the node's own data directories on disk, and these hold secrets."""
    readable = [path for path in paths if _is_readable_by_others(path)]
    if readable and _holds_secrets(config, image):
        remedy = f"chmod 700 {shlex.join(readable)}"
        log.warn("other users of this machine can read the secrets in the data directory", paths=readable, remedy=remedy)


def warn_if_nobody_can_log_in(config: BrokerConfig, image: MetadataImage) -> None:
    """Log a warning if all listeners for clients want SCRAM, and there is no user."""
    endpoints = parse_endpoints("listeners", config["listeners"])
    if all(_wants_scram_only(config, *each) for each in zip(endpoints, security_protocols_of(config, endpoints), strict=True)):
        kept = image.kept
        if not (any(kept.scram_credentials()) or kept.delegation_tokens):
            log.warn("nobody can log in: all listeners want SCRAM, and there is no user", remedy=_ADD_USER)


def _is_readable_by_others(path: str) -> bool:
    with suppress(OSError):
        status = Path(path).stat()
        return status.st_uid == os.geteuid() and bool(status.st_mode & _BY_OTHERS)
    return False


def _holds_secrets(config: BrokerConfig, image: MetadataImage) -> bool:
    endpoints = [*parse_endpoints("listeners", config["listeners"]), *config.controller_endpoints]
    if any(protocol != PLAINTEXT for protocol in security_protocols_of(config, endpoints)):
        return True
    if any(image.kept.scram_credentials()):
        return True
    altered = (image.configs(ResourceType.BROKER, name) for name in image.configured(ResourceType.BROKER))
    definitions = (definition_of(name) for overrides in altered for name in overrides)
    return any(definition is not None and definition.sensitive for definition in definitions)


def _wants_scram_only(config: BrokerConfig, endpoint: Endpoint, protocol: str) -> bool:
    mechanisms = config.sasl_config(endpoint.name).value("sasl.enabled.mechanisms")
    return protocol in SASL_PROTOCOLS and all(mechanism in MECHANISMS for mechanism in mechanisms)
