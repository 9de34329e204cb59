"""The cluster's metadata: the controller's decisions, the log they are written to, and the image that everything reads."""
