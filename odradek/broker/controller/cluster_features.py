"""Feature levels of a cluster: what the controller and all brokers support can be finalized (KIP-584, KIP-966)."""

from collections.abc import Iterable, Sequence
from typing import Final

from odradek.broker.controller.cluster_view import MIN_ISR, ClusterView
from odradek.broker.metadata.features import (
    BOOTSTRAP_RECORDS,
    ELIGIBLE_LEADER_REPLICAS,
    REGISTERED_FEATURES,
    refuse_update,
    update_features,
)
from odradek.broker.metadata.image import BROKER_RESOURCE
from odradek.protocol.metadata_records import ConfigRecord, FeatureLevelRecord, MetadataRecord

# It is the quorum's, and finalized by the quorum's own records.
_OF_THE_QUORUM: Final = "kraft.version"
SUPPORTED: Final = {name: levels for name, levels in REGISTERED_FEATURES.items() if name != _OF_THE_QUORUM}
_CLUSTER: Final = ""


def first_records(min_isr: int) -> Sequence[MetadataRecord]:
    """The records that the log of a new cluster begins with.

    Where leaders are elected from eligible replicas, one ``min.insync.replicas`` holds for all brokers.
    """
    return (
        *BOOTSTRAP_RECORDS,
        FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=_CLUSTER, name=MIN_ISR, value=str(min_isr)),
    )


def updated_features(view: ClusterView, updates: Iterable[tuple[str, int, int]]) -> list[MetadataRecord]:
    """The records that ``updates``, (feature, level, upgrade type), come to. KafkaError: INVALID_UPDATE_VERSION."""
    wanted = list(updates)
    records: list[MetadataRecord] = list(update_features(view.image.features, wanted, view.node_id, SUPPORTED))
    for name, level, _ in wanted:
        for broker in view.brokers.values():
            ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in broker.features}
            lowest, highest = ranges.get(name, (0, 0))
            if not lowest <= level <= highest:
                refuse_update(f"{name} cannot be set to {level}: broker {broker.broker_id} supports {lowest} to {highest}.")
    if any(name == ELIGIBLE_LEADER_REPLICAS and level > 0 for name, level, _ in wanted):
        records += _one_min_isr(view)
    return records


def _one_min_isr(view: ClusterView) -> list[MetadataRecord]:
    """From now on the cluster has one ``min.insync.replicas``, and no broker its own."""
    configs = view.image.configs
    records: list[MetadataRecord] = []
    if MIN_ISR not in configs(BROKER_RESOURCE, _CLUSTER):
        value = str(view.config[MIN_ISR])
        records.append(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=_CLUSTER, name=MIN_ISR, value=value))
    own = [name for name in view.image.configured(BROKER_RESOURCE) if name != _CLUSTER]
    records += [
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=name, name=MIN_ISR, value=None)
        for name in own
        if MIN_ISR in configs(BROKER_RESOURCE, name)
    ]
    return records
