"""Feature levels (KIP-584): what this broker supports, and what an update may make of them.

`metadata.version` is at the level of Kafka 4.3, in whose record versions the metadata log is written. Lower levels are understood
but not written, so it cannot be lowered. `transaction.version` tells clients how to go about transactions: from level 2 on each
transaction has an epoch of its own, and Produce adds partitions to it (KIP-890). `group.version` 1 is the consumer protocol of
groups (KIP-848). A new data directory begins with the highest levels of these; one from before a feature was there goes on
without it.

`kraft.version` 1 lets the metadata log tell of the quorum's voters (KIP-853). It is a record of the quorum, not a feature level
record, and no way leads back from it. `eligible.leader.replicas.version`, `share.version` and `streams.version` can be finalized
as in Kafka. Share and streams groups are not served, whatever the levels. Elections from eligible leader replicas want one
``min.insync.replicas`` for the whole cluster (KIP-966).
"""

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from odradek.common.config import BrokerConfig
from odradek.controller.metadata.image import BROKER_RESOURCE, MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import ConfigRecord, FeatureLevelRecord, MetadataRecord

METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
# Those of Kafka 4.3, all of them: its controllers accept no broker that does not cover each finalized feature, and its
# kafka-features.sh updates them together.
SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 30),  # 3.3-IV3 to 4.3-IV0
    TRANSACTION_VERSION: (0, 2),
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
}
BOOTSTRAP_RECORDS = tuple(
    FeatureLevelRecord(name=name, feature_level=SUPPORTED_FEATURES[name][1])
    for name in (METADATA_VERSION, TRANSACTION_VERSION, GROUP_VERSION)
)

UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3


def finalized_levels(features: Mapping[str, int], kraft_version: int) -> dict[str, int]:
    """The levels to tell of: those of the image's ``features``, and that of the quorum unless it is 0."""
    return {**features, KRAFT_VERSION: kraft_version} if kraft_version else dict(features)


def unknown_level(finalized: Mapping[str, int]) -> str | None:
    """The finalized features that this odradek does not know, in words; None if it knows all. It could misread their records."""
    for name, level in finalized.items():
        lowest, highest = SUPPORTED_FEATURES.get(name, (0, 0))
        if not lowest <= level <= highest:
            known = f"knows it at {lowest} to {highest}" if highest else "has no such feature"
            return f"the feature {name} is finalized at {level}, and odradek {known}"
    return None


def update_features(
    finalized: Mapping[str, int],
    updates: Iterable[tuple[str, int, int]],
    node_id: int,
) -> list[FeatureLevelRecord]:
    """The records that ``updates``, triples of feature, level and upgrade type, come to.

    All or nothing: raises KafkaError(INVALID_UPDATE_VERSION) for the first that may not be.
    """
    records = []
    for name, level, upgrade_type in updates:
        problem = _problem(finalized.get(name, 0), name, level, upgrade_type) or _unsupported(name, level, node_id)
        if problem is not None:
            refuse_update(problem)
        if finalized.get(name, 0) != level:
            records.append(FeatureLevelRecord(name=name, feature_level=level))
    return records


def refuse_update(problem: str) -> NoReturn:
    """Raise KafkaError(INVALID_UPDATE_VERSION) for the first update that may not be."""
    raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"No feature was updated: {problem}")


def _unsupported(name: str, level: int, node_id: int) -> str | None:
    if name not in SUPPORTED_FEATURES:
        return f"{name} cannot be set to {level}: there is no such feature on controller {node_id}."
    lowest, highest = SUPPORTED_FEATURES[name]
    if not lowest <= level <= highest:
        return f"{name} cannot be set to {level}: controller {node_id} supports {lowest} to {highest}."
    return None


def _problem(current: int, name: str, level: int, upgrade_type: int) -> str | None:
    invalid = f"{name} cannot be set to {level}:"
    if upgrade_type not in {UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE}:
        return f"{invalid} there is no upgrade type {upgrade_type}."
    if level < 0:
        return f"{invalid} levels start at 0."
    if level < current and upgrade_type == UPGRADE:
        return f"{invalid} it is at {current}, and an upgrade cannot lower it."
    if level < current and name == METADATA_VERSION:
        return f"{invalid} it is at {current}, and the metadata log is written at no other level."
    if level < current and name == KRAFT_VERSION:
        return f"{invalid} it is at {current}, and the metadata log goes on to tell of the voters."
    return None


MIN_ISR: Final = "min.insync.replicas"
CLUSTER: Final = ""


def one_min_isr(image: MetadataImage, config: BrokerConfig) -> list[MetadataRecord]:
    """The records by which the cluster has one value, that of ``config`` unless it has one already, and no broker its own."""
    records: list[MetadataRecord] = []
    if MIN_ISR not in image.configs(BROKER_RESOURCE, CLUSTER):
        value = str(config[MIN_ISR])
        records.append(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=CLUSTER, name=MIN_ISR, value=value))
    own = [name for name in image.configured(BROKER_RESOURCE) if name != CLUSTER]
    records += [
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=name, name=MIN_ISR, value=None)
        for name in own
        if MIN_ISR in image.configs(BROKER_RESOURCE, name)
    ]
    return records
