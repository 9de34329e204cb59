from pathlib import Path

from odradek.common.config.document import document
from odradek.common.config.table import BROKER_CONFIGS, TOPIC_CONFIGS

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_in_the_repository_is_the_one_the_table_gives():
    assert PAGE.read_text(encoding="utf-8") == document(), "run python -m odradek.common.config.document > docs/configuration.md"


def test_every_config_that_is_not_internal_is_on_the_page():
    page = document()
    for row in [*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()]:
        assert (f"| `{row.name}` |" in page) is not row.internal
