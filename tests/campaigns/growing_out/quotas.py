"""Client quotas that each run leaves for the next, and how either engine describes them."""

from typing import Any

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.growing_out.inventory import KEPT, Inventory
from tests.campaigns.growing_out.kafkas_own import accept
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.raw_client import RawClient

_Entity = dict[str, str | None]


def described_quotas(client: RawClient) -> Inventory:
    """Of every entity."""
    answer = accept(client.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=[], strict=False))
    return {
        f"quotas {sorted((str(part.entity_type), part.entity_name) for part in entry.entity)}": sorted(
            (str(value.key), float(value.value)) for value in entry.values
        )
        for entry in answer.entries
    }


def leave_quotas(client: RawClient, number: int) -> None:
    """Set some of the run's own, change those of all runs, and remove what the run before has set of its own."""
    mine, before = f"{KEPT} {number}/é", f"{KEPT} {number - 1}/é"
    entries = [
        _entry({"user": mine}, producer_byte_rate=1000.0 + number, request_percentage=12.5),
        _entry({"client-id": None, "user": mine}, consumer_byte_rate=2000.0),
        _entry({"user": None}, controller_mutation_rate=1e6 + number),
        _entry({"ip": "10.1.2.3"}, connection_creation_rate=100.0 + number),
        _entry({"user": before}, request_percentage=None),
    ]
    for result in client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False).entries:
        accept(result)
    name = f"quotas {[('user', None)]}"
    # Kafka's broker hears of it after its controller has answered.
    until(lambda: described_quotas(client).get(name) == [("controller_mutation_rate", 1e6 + number)])


def _entry(entity: _Entity, **values: float | None) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in values.items()],
    }
