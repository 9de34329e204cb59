"""Groups and their offsets: a group's members, its generation, and how far it has read."""
