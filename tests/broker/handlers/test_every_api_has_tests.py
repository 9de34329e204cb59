"""The directory of these tests follows the table of what is served."""

from pathlib import Path

from odradek.broker.handlers import SERVED


def test_every_api_that_is_served_has_a_file_of_tests():
    here = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}

    assert {api_key.name.lower() for api_key in SERVED} - here == set()
