"""The coordinators on this broker's partitions: load, unload, markers, verification."""
