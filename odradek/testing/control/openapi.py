"""The OpenAPI description of the control interface, made of its routes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek import __version__
from odradek.testing.control.routes import ROUTES

if TYPE_CHECKING:
    from odradek.testing.control.fields import Json
    from odradek.testing.control.route import Route

PATH = "/openapi.json"
_ERRORS = {
    "400": "The request cannot be understood; `error` says why, and what is allowed.",
    "401": "The token is missing or wrong.",
    "404": "There is no such thing.",
    "409": "It is not so, or cannot be done now; `error` says what there is.",
    "422": "Kafka refuses it; `code` is the name of its error.",
}


def description() -> Json:
    """OpenAPI 3.1."""
    paths: Json = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "odradek control", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _operation(route: Route) -> Json:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    in_query = [{"name": name, "in": "query", "schema": field.schema()} for name, field in route.query.items()]
    operation: Json = {
        "summary": route.about,
        "operationId": f"{route.method.lower()}{re.sub(r'[^a-zA-Z]+', '_', route.path).rstrip('_')}",
        "parameters": in_path + in_query,
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": {"schema": {"type": "object"}}}},
            **{status: {"description": about} for status, about in _ERRORS.items()},
        },
    }
    if route.is_open:
        operation["security"] = []
    if route.body or route.open_ended:
        schema = {
            "type": "object",
            "properties": {name: field.schema() for name, field in route.body.items()},
            "required": [name for name, field in route.body.items() if field.is_required],
            "additionalProperties": route.open_ended,
        }
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation
