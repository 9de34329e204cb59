"""The control interface: ``odradek.testing`` over HTTP and JSON, for tests in any language."""
