"""What a Python process of its own prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def printed(code: str, folder: Path, **environment: str) -> str:
    """What ``code`` prints in a new process that imports from ``folder`` first."""
    variables = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
