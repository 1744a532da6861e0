"""Property tests here are reproducible: fixed examples, no deadline, nothing kept on disk."""

from hypothesis import settings

settings.register_profile("reproducible", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("reproducible")
