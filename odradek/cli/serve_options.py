"""Flags of ``odradek serve``: for a broker that tests steer, for its metrics, and for its log."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from odradek.common.logging import LEVELS, log

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


def takes_log_level(command: CommandT) -> CommandT:
    """Add ``--log-level``, which applies to this process."""
    return click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default=LEVELS[0],
        envvar="ODRADEK_LOG_LEVEL",
        show_default=True,
        expose_value=False,
        callback=lambda _context, _option, level: setattr(log, "least_level", level),
        help="Leave out the log's lines below this level. Also ODRADEK_LOG_LEVEL.",
    )(command)


def may_be_steered(command: CommandT) -> CommandT:
    """Add the flags of the control interface, as ``control``: a Control, or None without ``--control-port``."""

    @click.option(
        "--control-port",
        type=click.IntRange(0, 65535),
        envvar="ODRADEK_CONTROL_PORT",
        help="Port of the HTTP interface by which tests control the broker; 0 takes a free one.",
    )
    @click.option(
        "--control-host",
        default="127.0.0.1",
        envvar="ODRADEK_CONTROL_HOST",
        show_default=True,
        help="Address of the control interface.",
    )
    @click.option(
        "--control-token", envvar="ODRADEK_CONTROL_TOKEN", help="Token that control requests must have.  [default: a random one]"
    )
    @click.option(
        "--control-certificate",
        type=click.Path(path_type=Path),
        envvar="ODRADEK_CONTROL_CERTIFICATE",
        help="TLS for the control interface: a PEM file with certificate and key.",
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

    @click.option("--metrics-port", type=click.IntRange(0, 65535), help="Port of the Prometheus metrics; 0 takes a free one.")
    @click.option("--metrics-host", help="Address of the metrics.  [default: the first listener's]")
    @click.option(
        "--metrics-token", envvar="ODRADEK_METRICS_TOKEN", help="Token that scrapes must have.  [default: none is needed]"
    )
    @click.option(
        "--metrics-certificate",
        type=click.Path(path_type=Path),
        envvar="ODRADEK_METRICS_CERTIFICATE",
        help="TLS for the metrics: a PEM file with certificate and key.",
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
