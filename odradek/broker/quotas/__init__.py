"""Client quotas: measured rates, throttle times, and the gate that applies them."""
