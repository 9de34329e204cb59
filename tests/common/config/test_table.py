"""The table agrees with itself. That it agrees with Kafka was checked row by row against Kafka 4.3.1's own definitions."""

from odradek.common.config.definitions import complain, parse, to_text
from odradek.common.config.ignored import IGNORED
from odradek.common.config.table import BROKER_CONFIGS, SECTIONS, TOPIC_CONFIGS, TOPIC_DEFINITIONS, synonyms, update_mode
from tests.cases import each_case

ROWS = [*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()]


@each_case("row", ROWS, ids=lambda row: row.name)
def test_a_default_is_a_value_the_config_may_have(row):
    complain(row, row.default)


@each_case("row", [row for row in ROWS if row.default is not None], ids=lambda row: row.name)
def test_a_default_that_is_told_reads_back_the_same(row):
    assert parse(row, to_text(row.default)) == row.default


@each_case("row", [row for row in ROWS if row.server_default], ids=lambda row: row.name)
def test_a_topic_config_falls_back_to_a_broker_config_of_its_type_and_default(row):
    fallback = BROKER_CONFIGS[row.server_default]
    assert fallback.type is row.type
    assert fallback.default in (row.default, None)


def test_no_name_is_listed_twice():
    assert sum(len(rows) for _, rows in SECTIONS) == len(BROKER_CONFIGS)
    assert len(TOPIC_DEFINITIONS) == len(TOPIC_CONFIGS)
    assert not IGNORED.keys() & BROKER_CONFIGS.keys()


def test_every_difference_from_kafka_has_its_reason():
    assert all(bool(row.difference) == (row.kafka_default is not None) for row in ROWS)


def test_a_config_in_several_units_is_decided_by_the_finest():
    assert synonyms("log.retention.hours") == ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
    assert synonyms("num.partitions") == ("num.partitions",)


@each_case(
    ("name", "mode"),
    [
        ("num.partitions", "read-only"),
        ("log.retention.ms", "cluster-wide"),
        ("process.roles", "read-only"),
        ("sasl.enabled.mechanisms", "per-broker"),
        ("ssl.keystore.location", "read-only"),
        ("num.io.threads", "cluster-wide"),
        ("a.plugins.own", "cluster-wide"),
    ],
)
def test_whether_a_config_may_change_is_known_for_configs_without_meaning_here_too(name, mode):
    assert update_mode(name) == mode
