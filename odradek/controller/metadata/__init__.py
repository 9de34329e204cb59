"""The cluster's metadata: decided, appended to a log, replayed."""
