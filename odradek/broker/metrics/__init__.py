"""The broker's metrics, in Prometheus' formats.

Each package counts in its own plain numbers. This package is imported at the first scrape, and runs only during scrapes.
``definitions`` has the type of a metric. ``requests``, ``partitions``, ``groups``, ``transactions``, ``shares``, ``telemetry``
and ``broker`` list the metrics and read the numbers, on the loop thread that owns them. ``table`` has all metrics. ``endpoint``
formats them in another thread and serves them over HTTP. ``table`` also writes docs/metrics.md.
"""
