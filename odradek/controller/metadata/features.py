"""Feature levels (KIP-584): the levels this broker supports, and decisions on updates.

`metadata.version` is at the level of Kafka 4.4, whose record versions the metadata log uses. A directory at a lower level, from
3.3-IV3 on, stays there until it is raised. The level cannot be lowered.

`transaction.version` tells clients how to run transactions: from level 2 on, each transaction has its own epoch, and Produce adds
partitions to it (KIP-890). `group.version` 1 is the consumer protocol of groups (KIP-848). `share.version` 1 has share groups
(KIP-932), 2 their dead-letter queues (KIP-1191). A new data directory begins with Kafka 4.4's levels. One that is older than a
feature continues without it.

`kraft.version` 1 lets the metadata log list the quorum's voters (KIP-853). It is a control record of the quorum, not a feature
level record, and cannot be lowered again. `streams.version` 1 has streams groups (KIP-1071). Elections from eligible leader
replicas (`eligible.leader.replicas.version` 1) require one ``min.insync.replicas`` for the whole cluster (KIP-966).
"""

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from odradek.common.config import BrokerConfig
from odradek.common.config.broker_config import values_in_force
from odradek.controller.metadata.image import BROKER_RESOURCE, MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import ConfigRecord, FeatureLevelRecord, MetadataRecord

METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
# All features of Kafka 4.4. Kafka's controllers accept only brokers that support each finalized
# feature, and its kafka-features.sh updates them together.
SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 33),  # 3.3-IV3 to 4.4-IV2
    TRANSACTION_VERSION: (0, 2),
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    SHARE_VERSION: (0, 2),
    STREAMS_VERSION: (0, 1),
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
}
# In Kafka's order.
_BOOTSTRAPPED: Final = (
    METADATA_VERSION,
    ELIGIBLE_LEADER_REPLICAS,
    GROUP_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
BOOTSTRAP_RECORDS = tuple(FeatureLevelRecord(name=name, feature_level=SUPPORTED_FEATURES[name][1]) for name in _BOOTSTRAPPED)
# The first levels of metadata.version with eligible leader replicas (KIP-966), cordoned directories (KIP-1066), ACLs for ranges
# of addresses (KIP-1276), and unregistered controllers (KIP-1312).
_FIRST_WITH_ELIGIBLE_LEADERS: Final = 23  # 4.0-IV1
FIRST_CORDONING_DIRECTORIES: Final = 30
FIRST_WITH_CIDR_ACLS: Final = 32
FIRST_UNREGISTERING_CONTROLLERS: Final = 33

UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3


def finalized_levels(features: Mapping[str, int], kraft_version: int) -> dict[str, int]:
    """Return the levels to report: the image's ``features``, and the quorum's unless it is 0."""
    return {**features, KRAFT_VERSION: kraft_version} if kraft_version else dict(features)


def unknown_level(finalized: Mapping[str, int]) -> str | None:
    """Return the finalized features unknown here, in words, or None. Their records could be misread."""
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
    """Return the records for ``updates``, triples of feature, level and upgrade type.

    All or nothing: raises KafkaError(INVALID_UPDATE_VERSION) for the first invalid update.
    """
    records = []
    for name, level, upgrade_type in updates:
        problem = _problem(finalized.get(name, 0), name, level, upgrade_type) or _unsupported(name, level, node_id)
        if problem is not None:
            refuse_update(problem)
        if finalized.get(name, 0) != level:
            records.append(FeatureLevelRecord(name=name, feature_level=level))
    new = {record.name: record.feature_level for record in records}
    metadata_version = new.get(METADATA_VERSION, finalized.get(METADATA_VERSION, 0))
    if new.get(ELIGIBLE_LEADER_REPLICAS) and metadata_version < _FIRST_WITH_ELIGIBLE_LEADERS:
        refuse_update(f"{ELIGIBLE_LEADER_REPLICAS} needs {METADATA_VERSION} at {_FIRST_WITH_ELIGIBLE_LEADERS}.")
    return records


def refuse_update(problem: str) -> NoReturn:
    """Raise KafkaError(INVALID_UPDATE_VERSION) for an invalid update."""
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
        return f"{invalid} unknown upgrade type {upgrade_type}."
    if level < 0:
        return f"{invalid} levels start at 0."
    if level < current and upgrade_type == UPGRADE:
        return f"{invalid} it is at {current}, and an upgrade cannot lower it."
    if level > current and upgrade_type != UPGRADE:
        return f"{invalid} it is at {current}, and a downgrade cannot raise it."
    if level < current and name == METADATA_VERSION:
        return f"{invalid} it is at {current}, and odradek writes the metadata log at this level only."
    if level < current and name == KRAFT_VERSION:
        return f"{invalid} it is at {current}, and the voters stay in the metadata log."
    return None


MIN_ISR: Final = "min.insync.replicas"
CLUSTER: Final = ""


def one_min_isr(image: MetadataImage, config: BrokerConfig) -> list[MetadataRecord]:
    """Return the records that leave one value for the whole cluster: the existing one, else that of the file of ``config``."""
    records: list[MetadataRecord] = []
    if MIN_ISR not in image.configs(BROKER_RESOURCE, CLUSTER):
        value = str(values_in_force(config.static)[MIN_ISR])
        records.append(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=CLUSTER, name=MIN_ISR, value=value))
    own = [name for name in image.configured(BROKER_RESOURCE) if name != CLUSTER]
    records += [
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=name, name=MIN_ISR, value=None)
        for name in own
        if MIN_ISR in image.configs(BROKER_RESOURCE, name)
    ]
    return records
