"""Flags of ``odradek serve``: for a broker that tests steer, and for its metrics."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


class Control(NamedTuple):
    """The control interface: its address, its token (None: a random one is drawn), and a certificate for TLS."""

    host: str
    port: int
    token: str | None
    is_in_memory: bool
    certificate: Path | None = None

    def __repr__(self) -> str:
        """Return the address without the token."""
        return f"Control({self.host}:{self.port})"


def may_be_steered(command: CommandT) -> CommandT:
    """Add the flags of the control interface, as ``control``: a Control, or None without ``--control-port``."""

    @click.option(
        "--control-port",
        type=click.IntRange(0, 65535),
        envvar="ODRADEK_CONTROL_PORT",
        help="Let tests steer the broker there, by HTTP; 0 takes a free port.",
    )
    @click.option(
        "--control-host", default="127.0.0.1", envvar="ODRADEK_CONTROL_HOST", show_default=True, help="Address for that."
    )
    @click.option("--control-token", envvar="ODRADEK_CONTROL_TOKEN", help="What lets them in.  [default: one is drawn]")
    @click.option(
        "--control-certificate",
        type=click.Path(path_type=Path),
        envvar="ODRADEK_CONTROL_CERTIFICATE",
        help="Speak TLS there: a PEM file with certificate and key.",
    )
    @click.option("--in-memory", is_flag=True, help="Keep the data in memory. Only with --control-port.")
    @wraps(command)
    def with_control(
        *,
        control_port: int | None,
        control_host: str,
        control_token: str | None,
        control_certificate: Path | None,
        in_memory: bool,
        **others: object,
    ) -> object:
        if control_port is None and in_memory:
            raise click.UsageError("--in-memory needs --control-port")
        if control_port is not None and others["metrics_port"] is not None:
            raise click.UsageError("--control-port and --metrics-port do not go together")
        if in_memory and others["data_dir"] is not None:
            raise click.UsageError("--in-memory and --data-dir do not go together")
        control = None
        if control_port is not None:
            control = Control(control_host, control_port, control_token, in_memory, control_certificate)
        return command(control=control, **others)

    return with_control  # type: ignore[return-value]


class Metrics(NamedTuple):
    """The endpoint of the metrics. ``certificate``, a PEM file with its key, turns TLS on. ``token`` limits access.

    A missing host means that of the first listener.
    """

    host: str | None
    port: int
    token: str | None = None
    certificate: Path | None = None

    def __repr__(self) -> str:
        """Return the address without the token."""
        return f"Metrics({self.host}:{self.port})"


def serves_metrics(command: CommandT) -> CommandT:
    """Add the flags of metrics, as ``metrics``: a Metrics, or None without ``--metrics-port``."""

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
