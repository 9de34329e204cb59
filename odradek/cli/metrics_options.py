"""The flags of ``odradek serve`` for its metrics."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


class Metrics(NamedTuple):
    """Where metrics are served: by TLS with a ``certificate``, a PEM file with its key, and to whoever has the ``token`` if any.

    Without a host it is the first listener's.
    """

    host: str | None
    port: int
    token: str | None = None
    certificate: Path | None = None

    def __repr__(self) -> str:
        """Without the token."""
        return f"Metrics({self.host}:{self.port})"


def serves_metrics(command: CommandT) -> CommandT:
    """Adds the flags of metrics, as ``metrics``: a Metrics, or None without ``--metrics-port``."""

    @click.option("--metrics-port", type=click.IntRange(0, 65535), help="Serve Prometheus metrics there; 0 takes a free port.")
    @click.option("--metrics-host", help="Address for them.  [default: that of the first listener]")
    @click.option("--metrics-token", envvar="ODRADEK_METRICS_TOKEN", help="What lets scrapers in.  [default: anybody is]")
    @click.option(
        "--metrics-certificate",
        type=click.Path(path_type=Path),
        envvar="ODRADEK_METRICS_CERTIFICATE",
        help="Serve them by TLS: a PEM file with certificate and key.",
    )
    @wraps(command)
    def with_metrics(
        *,
        metrics_port: int | None,
        metrics_host: str | None,
        metrics_token: str | None,
        metrics_certificate: Path | None,
        **others: object,
    ) -> object:
        if metrics_host is not None and metrics_port is None:
            raise click.UsageError("--metrics-host needs --metrics-port")
        metrics = None if metrics_port is None else Metrics(metrics_host, metrics_port, metrics_token, metrics_certificate)
        return command(metrics=metrics, **others)

    return with_metrics  # type: ignore[return-value]
