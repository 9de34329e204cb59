"""What has a secret does not show it."""

from odradek.cli.serve_options import Http
from odradek.http.access import Access


def test_tokens_are_not_shown():
    assert repr(Http("127.0.0.1", [9404], "s3cret")) == "Http(127.0.0.1:9404)"
    assert "s3cret" not in f"{Access('s3cret')}"
