"""The cluster's metadata: decisions are appended to a log, and replaying the log gives the image."""
