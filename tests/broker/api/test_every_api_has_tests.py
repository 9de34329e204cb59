"""The directory of these tests follows the table of what is served."""

from pathlib import Path

from odradek.broker.api import SERVED, module_of


def test_every_api_that_is_served_has_a_file_of_tests():
    here = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}

    assert {module_of(api_key) for api_key in SERVED} - here == set()
