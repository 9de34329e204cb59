"""Who a client is, and what it may do: TLS, SASL, access control lists, delegation tokens."""
