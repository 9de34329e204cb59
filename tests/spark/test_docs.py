"""The page on Spark is a program: its examples run one after the other, and print what it says they print."""

import contextlib
import io
import re

from tests.project.documents import DOCS

PAGE = DOCS / "spark.md"
DOCUMENTED_ADDRESS = "127.0.0.1:9092"


def test_the_examples_print_what_the_page_says(spark, broker_process, tmp_path):
    """They share one namespace, as in a shell, and the session of these tests stands in for the one that they ask for."""
    # Spark takes relative paths from where its JVM was started, which is the repository.
    source = PAGE.read_text().replace(DOCUMENTED_ADDRESS, broker_process().address)
    for directory in ("checkpoints/", "table"):
        source = source.replace(f'="{directory}', f'="{tmp_path}/{directory}').replace(
            f'("{directory}"', f'("{tmp_path}/{directory}"'
        )
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", source, re.MULTILINE | re.DOTALL)
    namespace: dict[str, object] = {}
    printed = io.StringIO()
    for language, block in blocks:
        if language == "python":
            with contextlib.redirect_stdout(printed):
                exec(block, namespace)
        else:
            assert printed.getvalue().strip() == block.strip()
            printed = io.StringIO()
    assert printed.getvalue() == ""
