"""Feature levels of a cluster: what the controller and all brokers support can be finalized (KIP-584, KIP-966)."""

from collections.abc import Iterable, Sequence

from odradek.broker.controller.cluster_view import ClusterView
from odradek.broker.metadata.features import BOOTSTRAP_RECORDS, CLUSTER, ELIGIBLE_LEADER_REPLICAS, MIN_ISR, refuse_update
from odradek.broker.metadata.image import BROKER_RESOURCE
from odradek.protocol.metadata_records import ConfigRecord, FeatureLevelRecord, MetadataRecord


def first_records(min_isr: int) -> Sequence[MetadataRecord]:
    """The records that the log of a new cluster begins with.

    Where leaders are elected from eligible replicas, one ``min.insync.replicas`` holds for all brokers.
    """
    return (
        *BOOTSTRAP_RECORDS,
        FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=CLUSTER, name=MIN_ISR, value=str(min_isr)),
    )


def ensure_brokers_support(view: ClusterView, updates: Iterable[tuple[str, int, int]]) -> None:
    """Raise KafkaError(INVALID_UPDATE_VERSION) unless each broker supports ``updates``, (feature, level, upgrade type)."""
    for name, level, _ in updates:
        for broker in view.brokers.values():
            ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in broker.features}
            lowest, highest = ranges.get(name, (0, 0))
            if not lowest <= level <= highest:
                refuse_update(f"{name} cannot be set to {level}: broker {broker.broker_id} supports {lowest} to {highest}.")
