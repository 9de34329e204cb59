"""All scripts: one module a slice."""
