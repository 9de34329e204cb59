"""Authentication by SASL: the state of a connection that has to authenticate, and the mechanisms. No sockets, no event loop."""
