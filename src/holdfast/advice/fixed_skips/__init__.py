"""What it costs to hold every action for the same number of steps: exactly, or estimated from a replay."""
