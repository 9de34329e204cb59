"""Who is at the other end: TLS, its stores, and the principals of certificates. Imported where a listener speaks it."""
