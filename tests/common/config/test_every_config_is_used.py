"""Every config of the table is read by the product, or its row says why it has no use.

A config of the broker is used by code that looks it up by its name, or by a config of a topic or a group that falls back to it
and is used. A config of a topic is used by code that looks it up, or that reads its attribute of ``LogConfig``. The table itself,
and the modules that only check or tell configs, do not count.
"""

import ast
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import odradek
from odradek.common.config.definitions import complain
from odradek.common.config.table import BROKER_CONFIGS, TOPIC_CONFIGS
from odradek.common.config.table_groups import CLIENT_METRICS_DEFINITIONS, GROUP_DEFINITIONS
from odradek.controller.metadata.resource_configs import LIMITED
from odradek.storage.log.log_config import LogConfig
from tests.cases import each_case

# Together: each process would read the whole product.
pytestmark = pytest.mark.xdist_group("configs")

ROOT = Path(odradek.__file__).parent
CONFIG = ROOT / "common" / "config"
# Of the room of configs, what acts on them.
ACTING = {CONFIG / name for name in ("broker_config.py", "endpoints.py", "listener_config.py", "roles.py", "topic_config.py")}
LOG_CONFIG = {field.name for field in fields(LogConfig)}


@cache
def read_by_the_product():
    """(every string that something is looked up by, every attribute that is read) of the modules that act on configs."""
    limited = [(kind, name.removeprefix("num.")) for kind, names in LIMITED.items() for name in names]
    names = {f"group.{kind}.{end}.{name}" for kind, name in limited for end in ("min", "max")}
    attributes = set()
    for path in ROOT.rglob("*.py"):
        if path.parent == CONFIG and path not in ACTING:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Load()):
                    names.add(name)
                case ast.Call(args=arguments):
                    names |= {each.value for each in arguments if isinstance(each, ast.Constant) and isinstance(each.value, str)}
                case ast.Attribute(attr=name, ctx=ast.Load()):
                    attributes.add(name)
    return names, attributes


def is_topic_config_read(name):
    names, attributes = read_by_the_product()
    field = name.replace(".", "_")
    return field in attributes if field in LOG_CONFIG else name in names


def is_broker_config_read(name):
    names, _ = read_by_the_product()
    return (
        name in names
        or any(row.server_default == name and is_topic_config_read(row.name) for row in TOPIC_CONFIGS.values())
        or any(row.server_default == name and row.name in names for row in GROUP_DEFINITIONS)
    )


@each_case("row", BROKER_CONFIGS.values(), ids=lambda row: row.name)
def test_a_broker_config_is_read_or_says_why_it_has_no_use(row):
    assert is_broker_config_read(row.name) is not bool(row.unused_reason)


@each_case("row", TOPIC_CONFIGS.values(), ids=lambda row: row.name)
def test_a_topic_config_is_read_or_says_why_it_has_no_use(row):
    assert is_topic_config_read(row.name) is not bool(row.unused_reason)


@each_case("row", GROUP_DEFINITIONS, ids=lambda row: row.name)
def test_a_config_of_groups_is_read_or_says_why_it_has_no_use(row):
    names, _ = read_by_the_product()
    assert (row.name in names) is not bool(row.unused_reason)
    complain(row, row.default)


@pytest.mark.parametrize("row", CLIENT_METRICS_DEFINITIONS, ids=lambda row: row.name)
def test_a_config_of_client_metrics_is_read(row):
    names, _ = read_by_the_product()
    assert row.name in names
    complain(row, row.default)


def test_a_config_that_nobody_reads_would_be_found():
    assert not is_broker_config_read("a.config.of.tomorrow")
    assert not is_topic_config_read("a.config.of.tomorrow")


def test_the_reason_is_told_to_clients_and_readers():
    row = BROKER_CONFIGS["queued.max.requests"]
    assert row.documentation.endswith(f"No effect: {row.unused_reason}.")
