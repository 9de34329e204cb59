"""The cluster's metadata: what the controller decides, the log that it is written to, and the image that all read."""
