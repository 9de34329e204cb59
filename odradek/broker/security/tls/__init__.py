"""TLS contexts, key and trust stores, and certificate principals. Imported only if a listener uses TLS."""
