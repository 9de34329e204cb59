"""Errors that stop a job, and checks of its paths before Spark starts, which takes half a minute.

An error has one line of text that names the remedy; no stack trace is needed.

A warehouse may be on any file system that Spark knows. Only a directory that is surely on this machine's disk is checked here;
for the others, Spark itself reports errors.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

_CAUSE = re.compile(r"^(?:Caused by: |: )?([\w.]*(?:Error|Exception): .+)$", re.MULTILINE)


class PipelineError(Exception):
    """One line: the fault, and its remedy."""


class Unreachable(PipelineError):
    """The cluster did not answer. A repeating job retries."""


class NoRecords(PipelineError):
    """The cluster has none of the topics yet. The first group or transaction creates them."""


def root_cause(failure: BaseException | str) -> str:
    """Return the innermost cause in nested stack traces of Python and Java, in one line."""
    text = str(failure).strip() or type(failure).__name__
    causes = _CAUSE.findall(text)
    line = causes[-1] if causes else text.partition("\n")[0].rpartition(" terminated with exception: ")[2]
    return " ".join(line.split())


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://)?")
_DEFAULT_FILE_SYSTEM = re.compile(r"fs\.default(FS|\.name)$")
# They may set another default file system. With the last one, Spark runs already.
_ELSEWHERE = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_GATEWAY_PORT")


def no_warehouse(path: object) -> NoRecords:
    """Return the error for a missing warehouse."""
    return NoRecords(f"there is no warehouse at {path}: run odradek pipeline ingest first, or correct --warehouse")


def check_warehouse(warehouse: str, *, master: str | None, config: Mapping[str, str], may_create: bool) -> None:
    """Raise PipelineError if the job cannot use the warehouse. It must exist, unless the job ``may_create`` it."""
    path = _on_this_disk(warehouse, master, config)
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise PipelineError(f"the warehouse {path} is not a directory: choose another --warehouse")
    if not may_create and not (path.exists() and any(path.iterdir())):
        raise no_warehouse(path)
    nearest = next(each for each in (path, *path.parents) if each.exists())
    if may_create and not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        reason = f"cannot write to the warehouse {path}: no permission on {nearest}"
        raise PipelineError(f"{reason}. Give your user write permission, or choose another --warehouse")


def check_report_file(out: str, option: str = "--out") -> None:
    """Raise PipelineError if the report cannot be written to ``out``. ``option`` is the option that names the file."""
    path = Path(out).absolute()
    if not path.parent.is_dir():
        raise PipelineError(f"there is no directory {path.parent} for the report: create it, or choose another {option}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        reason = "it is a directory" if path.is_dir() else "Permission denied"
        raise PipelineError(f"cannot write the report to {out}: {reason}. Choose another {option}")


def _on_this_disk(warehouse: str, master: str | None, config: Mapping[str, str]) -> Path | None:
    """Return the warehouse's path, absolute; None if it may be on another file system."""
    scheme = _SCHEME.match(warehouse)
    if scheme is not None:
        return Path(warehouse[scheme.end() :]) if scheme[1].lower() == "file" else None
    is_elsewhere = any(map(_DEFAULT_FILE_SYSTEM.search, config)) or any(map(os.environ.get, _ELSEWHERE))
    return None if is_elsewhere or not (master or "local").startswith("local") else Path(warehouse).absolute()
