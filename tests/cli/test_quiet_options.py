"""What has a secret does not show it."""

from odradek.cli.serve_options import Control, Metrics


def test_tokens_are_not_shown():
    assert repr(Metrics("127.0.0.1", 9404, "s3cret")) == "Metrics(127.0.0.1:9404)"
    assert "s3cret" not in f"{Control('127.0.0.1', 8082, 's3cret', is_in_memory=True)}"
