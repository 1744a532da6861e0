"""The cost of holding every action for the same number of steps: exact, or estimated from a replay."""
