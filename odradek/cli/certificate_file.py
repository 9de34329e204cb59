"""A PEM file with a certificate and its key, as ``ssl.keystore.location`` has it, for a port that is no listener."""

import ssl
from pathlib import Path

from odradek.broker.config.broker_config import load
from odradek.broker.config.definitions import InvalidConfig
from odradek.broker.security.key_stores import load_server_key_store
from odradek.broker.security.tls_context import server_context


def server_context_of(path: Path, flag: str) -> ssl.SSLContext:
    """What clients of the port meet. Raises InvalidConfig, which names the flag."""
    configs = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
    try:
        config = load(None, configs).listener_config("SSL")
        return server_context(config, load_server_key_store(config))
    except InvalidConfig as error:
        raise InvalidConfig(flag, str(path), error.allowed) from error
