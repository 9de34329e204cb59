"""What ``odradek serve`` does for ``--secure``: settings before the start, words for clients after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.logging import log
from odradek.cli.secure.clients import client_lines, write_client_properties
from odradek.cli.secure.files import SecureFiles, secret
from odradek.cli.secure.settings import secure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.config.endpoints import Endpoint
    from odradek.cli.metrics_options import Metrics


class Door(NamedTuple):
    """A door that is shut. ``files`` have what opens it, and with ``metrics`` what scrapers need."""

    files: SecureFiles
    metrics: bool

    def told(self, advertised: Mapping[str, Endpoint]) -> str:
        """What is printed of the broker's first listener; the file for Java is written."""
        endpoint = next(iter(advertised.values()))
        address = f"{f'[{endpoint.host}]' if ':' in endpoint.host else endpoint.host}:{endpoint.port}"
        try:
            write_client_properties(address, self.files)
        except OSError as error:
            log.warn("file for clients not written", path=str(self.files.client_properties), reason=str(error))
        return client_lines(address, self.files, metrics=self.metrics)


def shut_door(settings: dict[str, str], metrics: Metrics | None) -> tuple[Door, Metrics | None]:
    """Have ``settings`` shut the door, and metrics go by TLS to those who have the token.

    Raises InvalidConfig, DataDirectoryLocked, InconsistentDataDirectory, OSError.
    """
    files = secure(settings)
    if metrics is None:
        return Door(files, metrics=False), None
    is_own = metrics.token is None and metrics.certificate is None
    token = metrics.token or secret(files.metrics_token)
    return Door(files, metrics=is_own), metrics._replace(token=token, certificate=metrics.certificate or files.broker)
