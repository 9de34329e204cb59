"""The control API of the HTTP port: what the test kit does in Python, by HTTP and JSON. Its paths begin with ``/v1``."""

from __future__ import annotations

from odradek.http.control.kit_routes import KIT_ROUTES, TELEMETRY_ROUTES
from odradek.http.control.state_routes import STATE_ROUTES

ROUTES = (*STATE_ROUTES, *KIT_ROUTES, *TELEMETRY_ROUTES)
