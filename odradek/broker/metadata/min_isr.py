"""One ``min.insync.replicas`` for the whole cluster, as elections from eligible leader replicas want it (KIP-966)."""

from typing import Final

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.image import BROKER_RESOURCE, MetadataImage
from odradek.protocol.metadata_records import ConfigRecord, MetadataRecord

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
