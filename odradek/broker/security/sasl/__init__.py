"""SASL authentication: the state machine of a connection and the mechanisms. No sockets, no event loop."""
