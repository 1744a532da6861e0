import json
import subprocess
import sys

import holdfast.core

PROBE = """
import json, sys
import holdfast.core
import holdfast.core.checks
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_core_imports_numpy_and_nothing_heavier():
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(run.stdout))
    assert {"holdfast", "numpy"} <= loaded
    heavy = {"torch", "numba", "gymnasium", "scipy", "matplotlib", "stable_baselines3", "pandas"}
    assert loaded & heavy == set()


def test_every_exported_name_exists_and_the_list_is_sorted():
    names = holdfast.core.__all__
    assert names == sorted(set(names))
    assert [name for name in names if not hasattr(holdfast.core, name)] == []
