"""A PEM file with a certificate and its key, as for ``ssl.keystore.location``, for a port that is no Kafka listener."""

import ssl
from pathlib import Path

from odradek.broker.security.tls.key_stores import load_server_key_store, store_files
from odradek.broker.security.tls.tls_context import server_context
from odradek.common.config.broker_config import load
from odradek.common.config.definitions import InvalidConfig
from odradek.common.logging import log


class CertificateFile:
    """The TLS certificate of a port. The file is read again at a new connection, if it has changed.

    Raises InvalidConfig, which names the flag. Only the port's accepting thread calls ``context``.
    """

    def __init__(self, path: Path, flag: str) -> None:
        self._path = path
        self._flag = flag
        configs = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
        self._config = load(None, configs).listener_config("SSL")
        # Before reading: a file that changes meanwhile is read again.
        self._seen = store_files(self._config)
        try:
            self._context = self._read()
        except InvalidConfig as error:
            raise InvalidConfig(flag, str(path), error.allowed) from error

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection. An unusable file is logged, and the old certificate stays in force."""
        seen = store_files(self._config)
        if seen != self._seen:
            self._seen = seen
            try:
                self._context = self._read()
            except Exception as error:  # noqa: BLE001  whatever the file's content, the port goes on
                reason = error.allowed if isinstance(error, InvalidConfig) else str(error)
                log.warn("cannot reload the certificate: the old one stays in use", path=str(self._path), needs=reason)
            else:
                log.info("certificate reloaded", path=str(self._path), of=self._flag)
        return self._context

    def _read(self) -> ssl.SSLContext:
        return server_context(self._config, load_server_key_store(self._config))
