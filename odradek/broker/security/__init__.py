"""Authentication and authorization: TLS, SASL, access control lists, delegation tokens."""
