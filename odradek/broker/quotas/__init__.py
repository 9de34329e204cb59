"""What client quotas do to clients: measured rates, throttle times, and the gate that applies them."""
