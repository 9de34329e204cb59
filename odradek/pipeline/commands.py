"""``odradek pipeline``, also run by ``spark-submit``: each job by its own name, and ``run`` for all of them.

Spark is imported when a job begins, so that help and refusals need neither the extra nor Java. A failing job prints one line on
stderr and exits with status 2; ``--verbose`` adds the stack trace. Progress goes to stderr: on a terminal one line is
rewritten, elsewhere each step prints a line.
"""

import gc
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from odradek.pipeline.errors import NoRecords, PipelineError, Unreachable, check_report_file, check_warehouse, root_cause
from odradek.properties import parse_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipeline.ingest import Ingested, IngestOptions

DEFAULT_SERVER = "127.0.0.1:9092"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NEEDED = frozenset({"pandas", "plotly", "py4j", "pyarrow", "pyspark"})
_LINE_WIDTH = 100


class _Stopped(click.ClickException):
    exit_code = 2


def _interval(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """Parse ``30s``, ``5m``, ``500ms`` to seconds."""
    if text is None:
        return None
    told = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if told is None or not float(told[1]):
        raise click.BadParameter(f"{text!r} is not an interval like 30s, 5m or 1h")
    return float(told[1]) * _SECONDS[told[2]]


def _settings(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse ``KEY=VALUE`` arguments to a dict."""
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{text!r} is not of the form key=value")
        settings[key.strip()] = value.strip()
    return settings


def _client_properties(path: Path | None) -> dict[str, str]:
    """Return the configs in a file of properties, without the address, which ``--bootstrap-server`` has."""
    if path is None:
        return {}
    try:
        configs = parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a properties file"
        raise _Stopped(f"--command-config {path} cannot be read: {reason}") from error
    configs.pop("bootstrap.servers", None)
    return configs


@dataclass(frozen=True, slots=True)
class _Spark:
    """The options of a session."""

    master: str | None
    conf: dict[str, str]
    verbose: bool

    def check(self, warehouse: str, *, may_create: bool) -> None:
        """Raise PipelineError if the job cannot use the warehouse, or if it is missing, unless the job ``may_create`` it."""
        check_warehouse(warehouse, master=self.master, config=self.conf, may_create=may_create)


class _Progress:
    """Progress on stderr."""

    def __init__(self) -> None:
        self._shown = ""

    def __call__(self, line: str) -> None:
        if line == self._shown:
            return
        self._shown = line
        if sys.stderr.isatty():
            click.echo(f"\r{line[:_LINE_WIDTH].ljust(_LINE_WIDTH)}", nl=False, err=True)
        else:
            click.echo(line, err=True)

    def end(self) -> None:
        """Keep the present line, and start the next one."""
        if self._shown and sys.stderr.isatty():
            click.echo(err=True)
        self._shown = ""


def _with(command: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Add these options to the command. Its help lists them in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def _uses_spark(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every job: ``warehouse``, and ``spark``, made from ``--master``, ``--conf`` and ``--verbose``."""

    @wraps(command)
    def with_spark(*, master: str | None, conf: dict[str, str], verbose: bool, **arguments: Any) -> Any:
        return command(spark=_Spark(master, conf, verbose), **arguments)

    options = (
        click.option("--warehouse", required=True, metavar="DIR", help="The directory for records, tables and checkpoints."),
        click.option("--master", help="Spark's master: local[2], spark://HOST:7077, yarn.  [default: Spark's own: local[*]]"),
        click.option("--conf", callback=_settings, multiple=True, metavar="KEY=VALUE", help="A Spark config; repeatable."),
        click.option("--verbose", is_flag=True, help="Show Spark's output, and stack traces."),
    )
    return _with(with_spark, options)


def _talks_to_a_cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a job that connects to a cluster. ``kafka_config`` merges the file and the single configs."""

    @wraps(command)
    def with_configs(*, command_config: Path | None, kafka_config: dict[str, str], **arguments: Any) -> Any:
        return command(kafka_config=_client_properties(command_config) | kafka_config, **arguments)

    options = (
        click.option(
            "-b",
            "--bootstrap-server",
            default=DEFAULT_SERVER,
            envvar="ODRADEK_BOOTSTRAP",
            show_default=True,
            metavar="HOST:PORT",
            help="One broker or several, separated by commas.",
        ),
        click.option(
            "--command-config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Client configs, as for Kafka's commands: security.protocol and its settings.",
        ),
        click.option(
            "--kafka-config",
            callback=_settings,
            multiple=True,
            metavar="KEY=VALUE",
            help="A client config, which overrides the file's; repeatable.",
        ),
    )
    return _with(with_configs, options)


def _reads_a_cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a job that reads from a cluster."""
    options = (
        _talks_to_a_cluster,
        click.option(
            "--starting-offsets",
            default="earliest",
            show_default=True,
            help="Where the first run begins: earliest, latest, or JSON in the format of Spark's Kafka source.",
        ),
        click.option("--once", is_flag=True, help="Run the jobs once, and exit.  [default]"),
        click.option(
            "--every", callback=_interval, metavar="INTERVAL", help="Repeat the jobs, with a pause of this length: 30s, 5m, 1h."
        ),
    )
    return _with(command, options)


def _finds(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a job that looks for findings."""
    options = (
        click.option("--findings-topic", metavar="TOPIC", help="The topic to send findings to. Each finding is sent once."),
        click.option(
            "--threshold",
            "thresholds",
            callback=_settings,
            multiple=True,
            metavar="NAME=NUMBER",
            help="A limit from which there is a finding; repeatable. An unknown NAME lists all.",
        ),
    )
    return _with(command, options)


@click.group(invoke_without_command=True)
@click.pass_context
def pipeline(context: click.Context) -> None:
    """Run jobs on Spark that turn the history of a Kafka cluster's groups and transactions into tables."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


@pipeline.command()
@_reads_a_cluster
@_uses_spark
def ingest(spark: _Spark, once: bool, every: float | None, **where: Any) -> int:
    """Read new records of the coordinators' topics into the warehouse."""
    with _plainly(verbose=spark.verbose):
        options = _options(once=once, every=every, **where)
        spark.check(options.warehouse, may_create=True)
        return _repeat(spark, [_ingest_job(options)], every)


@pipeline.command()
@_uses_spark
def tables(spark: _Spark, warehouse: str) -> int:
    """Build tables from the warehouse's records: groups' generations and members, commits, lag, transactions."""
    with _plainly(verbose=spark.verbose):
        spark.check(warehouse, may_create=False)
        return _repeat(spark, [_tables_job(warehouse)], None)


@pipeline.command()
@_talks_to_a_cluster
@_finds
@_uses_spark
def findings(spark: _Spark, **what: Any) -> int:
    """Look for trouble in the tables, print the grave findings, and send all findings to a topic if one is named."""
    with _plainly(verbose=spark.verbose):
        jobs = [_findings_job(**what), _print_findings(what["warehouse"])]
        spark.check(what["warehouse"], may_create=False)
        return _repeat(spark, jobs, None)


@pipeline.command()
@click.option("--out", required=True, metavar="FILE", help="The file to write.")
@_uses_spark
def report(spark: _Spark, warehouse: str, out: str) -> int:
    """Write the warehouse's content as one page of HTML that needs no network."""
    with _plainly(verbose=spark.verbose):
        spark.check(warehouse, may_create=False)
        return _repeat(spark, [_report_job(warehouse, out)], None)


@pipeline.command()
@_reads_a_cluster
@_finds
@click.option("--report", metavar="FILE", help="Also write the report to this file, after each run.")
@_uses_spark
def run(spark: _Spark, once: bool, every: float | None, report: str | None, **what: Any) -> int:
    """Run all steps: ingest new records, update the tables, look for findings in them, and write the report if it is named."""
    with _plainly(verbose=spark.verbose):
        options = _options(once=once, every=every, **what)
        del what["starting_offsets"]
        jobs = [_ingest_job(options), _tables_job(options.warehouse), _findings_job(**what)]
        if report is not None:
            jobs.append(_report_job(options.warehouse, report, "--report"))
        spark.check(options.warehouse, may_create=True)
        return _repeat(spark, jobs, every)


Job = Callable[["SparkSession", _Progress], None]


def _options(*, once: bool, every: float | None, **where: Any) -> "IngestOptions":
    """Return the options of ingest. Raises PipelineError if the cluster is not reachable."""
    if once and every is not None:
        raise click.UsageError("--once and --every cannot be used together")
    from odradek.pipeline.ingest import IngestOptions, check

    options = IngestOptions(where["bootstrap_server"], where["warehouse"], where["starting_offsets"], where["kafka_config"])
    check(options)
    return options


def _ingest_job(options: "IngestOptions") -> Job:
    def work(session: "SparkSession", progress: _Progress) -> None:
        from odradek.pipeline.ingest import ingest as ingest_once

        progress("ingest: looking at the cluster")
        progress(_progress_line(ingest_once(session, options, lambda done: progress(_progress_line(done)))))

    return work


def _tables_job(warehouse: str) -> Job:
    def work(session: "SparkSession", progress: _Progress) -> None:
        from odradek.pipeline.tables import build_tables

        progress("tables: reading new records")
        built = build_tables(session, warehouse, progress)
        progress(f"tables: {_count(built.records, 'record')}, {_count(built.samples, 'sample')} of partitions' ends")

    return work


def _findings_job(
    warehouse: str,
    bootstrap_server: str,
    kafka_config: dict[str, str],
    findings_topic: str | None,
    thresholds: dict[str, str],
) -> Job:
    from odradek.pipeline.cluster import require_reachable
    from odradek.pipeline.findings import FindingsTopic, Thresholds

    from_where_on = Thresholds().with_settings(thresholds)
    topic = FindingsTopic(findings_topic, bootstrap_server, kafka_config) if findings_topic else None
    if topic is not None:
        require_reachable(bootstrap_server)

    def work(session: "SparkSession", progress: _Progress) -> None:
        from odradek.pipeline.findings import build_findings, read_findings

        progress("findings: searching the tables")
        sent = build_findings(session, warehouse, from_where_on, topic)
        counted = {row.severity: row["count"] for row in read_findings(session, warehouse).groupBy("severity").count().collect()}
        told = ", ".join(f"{counted.get(severity, 0):,} {severity}" for severity in ("high", "medium", "low"))
        progress(f"findings: {told}" + (f"; {_count(sent, 'message')} sent to {findings_topic}" if topic is not None else ""))

    return work


def _print_findings(warehouse: str) -> Job:
    def work(session: "SparkSession", _progress: _Progress) -> None:
        from odradek.pipeline.findings import describe

        for line in describe(session, warehouse):
            click.echo(line)

    return work


def _report_job(warehouse: str, out: str, option: str = "--out") -> Job:
    check_report_file(out, option)

    def work(session: "SparkSession", progress: _Progress) -> None:
        from odradek.pipeline.report import write_report

        size_bytes = write_report(session, warehouse, out, progress)
        progress(f"report: {out}, {size_bytes / 1e6:.1f} MB")

    return work


def _progress_line(done: "Ingested") -> str:
    bad = f", {done.quarantined:,} of them to quarantine" if done.quarantined else ""
    return f"ingest: {_count(done.records, 'record')}{bad} in {_count(done.batches, 'micro-batch', 'micro-batches')}"


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def _repeat(spark: _Spark, jobs: list[Job], pause_s: float | None) -> int:
    """Run the jobs once, or repeatedly with a pause. If repeated, NoRecords and Unreachable are reported and retried."""
    progress = _Progress()
    with _session(spark, progress) as session:
        while True:
            try:
                for job in jobs:
                    job(session, progress)
                    progress.end()
            except (NoRecords, Unreachable) as failure:
                if pause_s is None:
                    raise
                progress(str(failure))
                progress.end()
            if pause_s is None:
                return 0
            Event().wait(pause_s)


@contextmanager
def _session(spark: _Spark, progress: _Progress) -> Iterator["SparkSession"]:
    # The command turns garbage collection off so that a broker starts fast. A long job needs it.
    gc.enable()
    progress("starting Spark")
    from odradek.pipeline.session import spark_session

    session = spark_session(spark.master, config=spark.conf, verbose=spark.verbose)
    try:
        yield session
    finally:
        progress.end()
        session.stop()


@contextmanager
def _plainly(*, verbose: bool) -> Iterator[None]:
    """Turn an exception into one line on stderr."""
    try:
        yield
    except ModuleNotFoundError as failure:
        if (failure.name or "").partition(".")[0] not in _NEEDED:
            raise
        raise _Stopped(f'{failure.name} is not installed: pip install "odradek[pipeline]"') from failure
    except click.ClickException:
        raise
    except Exception as failure:
        if verbose:
            import traceback

            traceback.print_exc()
        line = str(failure) if isinstance(failure, PipelineError) else f"the job failed: {root_cause(failure)}"
        raise _Stopped(line if verbose or isinstance(failure, PipelineError) else f"{line} (--verbose shows all)") from failure
