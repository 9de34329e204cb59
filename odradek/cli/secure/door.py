"""The ``--secure`` option of ``odradek serve``: settings before the start, instructions for clients after it.

The instructions use the option names of each client library. They end up in logs, so they have no secrets: they name the files
with the secrets. One file has all settings, for Java.
"""

from __future__ import annotations

import json
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.cli.secret_files import write_secret
from odradek.cli.secure.files import USER, SecureFiles, secret, secure
from odradek.common.logging import log
from odradek.properties import property_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from odradek.cli.secure.files import SecureFiles
    from odradek.cli.serve_options import Control, Metrics
    from odradek.common.config.endpoints import Endpoint

_LOGIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_TEMPLATE: Final = """
Clients must use TLS, and log in as the user {user}. The secrets are in files that only their owner can read.

# kafka-python
from pathlib import Path
kafka = dict(
    bootstrap_servers={address},
    security_protocol="SASL_SSL",
    ssl_cafile={authority},
    sasl_mechanism="PLAIN",
    sasl_plain_username={name},
    sasl_plain_password=Path({password}).read_text().strip(),
)

# aiokafka
from pathlib import Path
from aiokafka.helpers import create_ssl_context
kafka = dict(
    bootstrap_servers={address},
    security_protocol="SASL_SSL",
    ssl_context=create_ssl_context(cafile={authority}),
    sasl_mechanism="PLAIN",
    sasl_plain_username={name},
    sasl_plain_password=Path({password}).read_text().strip(),
)

# librdkafka: confluent-kafka
from pathlib import Path
kafka = {{
    "bootstrap.servers": {address},
    "security.protocol": "SASL_SSL",
    "ssl.ca.location": {authority},
    "sasl.mechanism": "PLAIN",
    "sasl.username": {name},
    "sasl.password": Path({password}).read_text().strip(),
}}

# Spark
from pathlib import Path
login = 'username={name} password="' + Path({password}).read_text().strip() + '"'
kafka = {{
    "kafka.bootstrap.servers": {address},
    "kafka.security.protocol": "SASL_SSL",
    "kafka.ssl.truststore.type": "PEM",
    "kafka.ssl.truststore.certificates": Path({authority}).read_text(),
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": "{module} required " + login + ";",
}}

{more}# Java, as Properties; Kafka's tools and odradek's commands, as --command-config
{properties}
"""
_METRICS: Final = """\
# Prometheus, beside job_name and static_configs
scheme: https
authorization:
  credentials_file: {token}
tls_config:
  ca_file: {authority}

"""
_CONTROL: Final = """\
# the control interface
curl --cacert {authority} \\
    --header "Authorization: Bearer $(cat {token})" {url}/topics

"""


def client_lines(address: str, files: SecureFiles, *, metrics: bool, control_url: str | None = None) -> str:
    """Return the instructions for clients that connect to ``address``; with parts for metrics and the control interface."""
    scraper = _METRICS.format(token=_quoted(files.metrics_token), authority=_quoted(files.authority)) if metrics else ""
    steering = ""
    if control_url is not None:
        authority, token = quote(str(files.authority)), quote(str(files.control_token))
        steering = _CONTROL.format(authority=authority, token=token, url=control_url)
    return _TEMPLATE.format(
        user=USER,
        name=_quoted(USER),
        address=_quoted(address),
        authority=_quoted(files.authority),
        password=_quoted(files.password),
        module=_LOGIN_MODULE,
        properties=files.client_properties,
        more=scraper + steering,
    )


def write_client_properties(address: str, files: SecureFiles) -> None:
    """Write all settings for Java clients into one file, which can be copied to their machines. Raises OSError."""
    password = secret(files.password)
    settings = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": files.authority.read_text(encoding="ascii"),
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{_LOGIN_MODULE} required username="{USER}" password="{password}";',
    }
    lines = [property_line(key, value) + "\n" for key, value in settings.items()]
    write_secret(files.client_properties, "".join(lines).encode())


def _quoted(text: str | Path) -> str:
    return json.dumps(str(text), ensure_ascii=False)


class Door(NamedTuple):
    """A secured broker. ``files`` has the secrets of clients; with ``metrics``, those of scrapers, too."""

    files: SecureFiles
    metrics: bool

    def shut_control(self, control: Control) -> Control:
        """Return the control interface with TLS and a token. Raises OSError."""
        token = control.token or secret(self.files.control_token)
        return control._replace(token=token, certificate=control.certificate or self.files.broker)

    def told(self, advertised: Mapping[str, Endpoint], control_url: str | None = None) -> str:
        """Return the instructions for the broker's first listener, and write the file for Java.

        ``control_url`` is set if the control interface uses the certificate and token of the files.
        """
        endpoint = next(iter(advertised.values()))
        address = f"{f'[{endpoint.host}]' if ':' in endpoint.host else endpoint.host}:{endpoint.port}"
        try:
            write_client_properties(address, self.files)
        except OSError as error:
            log.warn("cannot write the file with client configs", path=str(self.files.client_properties), reason=str(error))
        return client_lines(address, self.files, metrics=self.metrics, control_url=control_url)


def shut_door(settings: dict[str, str], metrics: Metrics | None, control_host: str | None = None) -> tuple[Door, Metrics | None]:
    """Change ``settings`` to admit clients by SASL_SSL only, and metrics to TLS and a token.

    The certificate is valid for the hosts of both ports. Raises InvalidConfig, DataDirectoryLocked, InconsistentDataDirectory,
    OSError.
    """
    more_hosts = [None if metrics is None else metrics.host, control_host]
    files = secure(settings, [host for host in more_hosts if host is not None])
    if metrics is None:
        return Door(files, metrics=False), None
    is_own = metrics.token is None and metrics.certificate is None
    token = metrics.token or secret(files.metrics_token)
    return Door(files, metrics=is_own), metrics._replace(token=token, certificate=metrics.certificate or files.broker)
