"""The OpenAPI description of the HTTP port, made from its routes and the types of their answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from odradek import __version__
from odradek.http.access import METRICS_PATH
from odradek.http.control import ROUTES
from odradek.http.control.answers import BrokerState, Error
from odradek.http.control.schemas import Schema, Schemas

if TYPE_CHECKING:
    from odradek.http.control.route import Route

PREFIX: Final = "/v1"
_JSON: Final = "application/json"
_ERRORS: Final = {
    "400": "The request is invalid; `error` has the reason, and the allowed values.",
    "401": "The token is missing or wrong.",
    "404": "It does not exist.",
    "409": "The state is another one, or does not allow it; `error` describes the state.",
    "422": "Kafka refuses the request; `code` is the name of its error.",
}


def description() -> dict[str, Any]:
    """Return the OpenAPI 3.1 description."""
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(route, schemas)
    is_ready = {status: _answer(about, schemas.of(BrokerState)) for status, about in _READY.items()}
    paths["/ready"] = {"get": {"summary": _READY_ABOUT, "operationId": "get_ready", "responses": is_ready, "security": []}}
    scraped = {"200": {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}}
    paths[METRICS_PATH] = {
        "get": {
            "summary": "The metrics. They need a token only if the broker has a metrics token; both tokens will do.",
            "operationId": "get_metrics",
            "responses": scraped,
            "security": [{}, {"token": []}],
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "odradek", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas.components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


_READY_ABOUT: Final = "Wait until clients can connect. Returns the address."
_READY: Final = {"200": "Clients can connect.", "503": "The broker was stopped or killed."}


def _answer(about: str, schema: Schema) -> dict[str, Any]:
    return {"description": about, "content": {_JSON: {"schema": schema}}}


def _operation(route: Route, schemas: Schemas) -> dict[str, Any]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    in_query = [{"name": name, "in": "query", "schema": field.schema()} for name, field in route.query.items()]
    operation: dict[str, Any] = {
        "summary": route.about,
        "operationId": f"{route.method.lower()}{re.sub(r'[^a-zA-Z]+', '_', route.path).rstrip('_')}",
        "parameters": in_path + in_query,
        "responses": {
            "200": _answer("Done.", schemas.of(route.answer)),
            **{status: _answer(about, schemas.of(Error)) for status, about in _ERRORS.items()},
        },
    }
    if route.body or route.open_ended:
        schema = {
            "type": "object",
            "properties": {name: field.schema() for name, field in route.body.items()},
            "required": [name for name, field in route.body.items() if field.is_required],
            "additionalProperties": route.open_ended,
        }
        operation["requestBody"] = {"content": {_JSON: {"schema": schema}}}
    return operation
