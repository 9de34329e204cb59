"""What the broker tells those who watch it, in Prometheus' formats.

Each room counts in plain numbers of its own, and nothing here is imported, let alone called, until somebody asks. ``definitions``
says what a metric is; ``requests``, ``partitions``, ``groups``, ``transactions`` and ``broker`` list them and read the numbers,
on the loop thread that owns them; ``table`` has them all; ``exposition`` makes them text, in another thread; ``endpoint`` is the
HTTP side of it; ``document`` writes docs/metrics.md.
"""
