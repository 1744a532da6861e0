"""Benchmarks of holdfast: ``python -m benchmarks``. ``benchmarks.harness`` explains the conventions."""
