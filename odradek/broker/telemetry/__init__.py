"""Client telemetry (KIP-714): the subscriptions to clients' metrics, and the pushed metrics.

``ClientMetricsManager`` answers GetTelemetrySubscriptions and PushTelemetry. It is created with the first such request. The
broker itself receives the pushed metrics, so that no receiver has to be configured.
"""
