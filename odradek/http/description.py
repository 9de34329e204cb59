"""The OpenAPI description of the HTTP port, made from its routes and the types of their answers.

``python -m odradek.http.description > examples/openapi.json`` writes it to a file, for the clients generated in ``examples/``.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from odradek.http.access import METRICS_PATH
from odradek.http.control import ROUTES
from odradek.http.control.answers import BrokerState, Error
from odradek.http.control.schemas import Schema, Schemas

if TYPE_CHECKING:
    from odradek.http.control.route import Route

PREFIX: Final = "/v1"
# The API's own: its paths and fields do not change with each release.
_VERSION: Final = "1"
_JSON: Final = "application/json"
# One default answer, not one for each status: so generated clients return the answer or raise the error.
_DEFAULT: Final = {"$ref": "#/components/responses/Error"}
_ERROR: Final = (
    "400: the request is invalid; `error` has the reason, and the allowed values. "
    "401: the token is missing or wrong. "
    "404: it does not exist. "
    "409: the state is another one, or does not allow it; `error` describes the state. "
    "422: Kafka refuses the request; `code` is the name of its error."
)


def description() -> dict[str, Any]:
    """Return the OpenAPI 3.1 description."""
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(route, schemas)
    is_ready = {status: _answer(about, schemas.of(BrokerState)) for status, about in _READY.items()}
    paths["/ready"] = {
        "get": {
            "summary": _READY_ABOUT,
            "operationId": "get_ready",
            "responses": is_ready | {"default": _DEFAULT},
            "security": [],
        }
    }
    scraped = {"200": {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}}
    paths[METRICS_PATH] = {
        "get": {
            "summary": "The metrics. They need a token only if the broker has a metrics token; both tokens will do.",
            "operationId": "get_metrics",
            "responses": {**scraped, "default": _DEFAULT},
            "security": [{}, {"token": []}],
        }
    }
    error = _answer(_ERROR, schemas.of(Error))
    return {
        "openapi": "3.1.0",
        "info": {"title": "odradek", "version": _VERSION},
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "responses": {"Error": error},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
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
            "default": _DEFAULT,
        },
    }
    if route.body or route.open_ended:
        schema = {
            "type": "object",
            "properties": {name: field.schema() for name, field in route.body.items()},
            "required": [name for name, field in route.body.items() if field.is_required],
            "additionalProperties": route.open_ended,
        }
        is_required = route.open_ended or bool(schema["required"])
        operation["requestBody"] = {"required": is_required, "content": {_JSON: {"schema": schema}}}
    return operation


if __name__ == "__main__":
    sys.stdout.write(json.dumps(description(), indent=1) + "\n")
