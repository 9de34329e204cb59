"""Client telemetry (KIP-714): which client is asked for which of its metrics, and what clients have pushed.

``ClientMetricsManager`` answers GetTelemetrySubscriptions and PushTelemetry. It is made with the first such request; the broker
itself is the receiver of what clients push, so that nothing has to be configured for it.
"""
