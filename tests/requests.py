"""Requests whose structs are written as dictionaries."""

from typing import Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.testing.timeline.messages import from_json


def fields_of(api_key: ApiKey, fields: dict[str, Any]) -> dict[str, Any]:
    """A request's fields, with its structs made of dictionaries. Other values stay."""
    structs = {name: value for name, value in fields.items() if isinstance(value, list) and value and isinstance(value[0], dict)}
    made = from_json(messages(api_key).request, structs)
    return fields | {name: getattr(made, name) for name in structs}


def request_of(api_key: ApiKey, **fields: Any) -> Any:
    return messages(api_key).request(**fields_of(api_key, fields))
