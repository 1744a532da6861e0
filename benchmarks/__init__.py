"""Benchmarks of holdfast: ``python -m benchmarks``. The conventions are in ``benchmarks.harness``."""
