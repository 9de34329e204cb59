"""The broker's metrics, in Prometheus' formats.

Each room counts in plain numbers of its own. This package is imported at the first scrape, and called at no other time.
``definitions`` has the type of a metric. ``requests``, ``partitions``, ``groups``, ``transactions`` and ``broker`` list the
metrics and read the numbers, on the loop thread that owns them. ``table`` has all metrics, ``exposition`` formats them as text
in another thread, ``endpoint`` serves them over HTTP, ``document`` writes docs/metrics.md.
"""
