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
    from odradek.cli.control_options import Control
    from odradek.cli.metrics_options import Metrics


class Door(NamedTuple):
    """A door that is shut. ``files`` have what opens it, and with ``metrics`` what scrapers need."""

    files: SecureFiles
    metrics: bool

    def shut_control(self, control: Control) -> Control:
        """The control interface by TLS, to those who have the token. Raises OSError."""
        token = control.token or secret(self.files.control_token)
        return control._replace(token=token, certificate=control.certificate or self.files.broker)

    def told(self, advertised: Mapping[str, Endpoint], control_url: str | None = None) -> str:
        """What is printed of the broker's first listener; the file for Java is written.

        ``control_url`` is set where the control interface has the files' certificate and token.
        """
        endpoint = next(iter(advertised.values()))
        address = f"{f'[{endpoint.host}]' if ':' in endpoint.host else endpoint.host}:{endpoint.port}"
        try:
            write_client_properties(address, self.files)
        except OSError as error:
            log.warn("file for clients not written", path=str(self.files.client_properties), reason=str(error))
        return client_lines(address, self.files, metrics=self.metrics, control_url=control_url)


def shut_door(settings: dict[str, str], metrics: Metrics | None, control_host: str | None = None) -> tuple[Door, Metrics | None]:
    """Have ``settings`` shut the door, and metrics go by TLS to those who have the token.

    The certificate is for the hosts of both ports, too.

    Raises InvalidConfig, DataDirectoryLocked, InconsistentDataDirectory, OSError.
    """
    more_hosts = [None if metrics is None else metrics.host, control_host]
    files = secure(settings, [host for host in more_hosts if host is not None])
    if metrics is None:
        return Door(files, metrics=False), None
    is_own = metrics.token is None and metrics.certificate is None
    token = metrics.token or secret(files.metrics_token)
    return Door(files, metrics=is_own), metrics._replace(token=token, certificate=metrics.certificate or files.broker)
