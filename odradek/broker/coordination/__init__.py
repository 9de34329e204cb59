"""The coordinators on this broker's partitions: loading, unloading, markers, verification."""
