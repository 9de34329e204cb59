"""Groups and their offsets: who is in a group, which generation it is in, and how far it has read."""
