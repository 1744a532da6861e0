"""Statistics: means and rates with their intervals, the bootstrap, and comparisons of algorithms over tasks."""
