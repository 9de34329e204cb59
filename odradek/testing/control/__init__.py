"""The control interface: what ``odradek.testing`` does, over HTTP and JSON, for tests in any language."""
