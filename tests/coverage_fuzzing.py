"""Inputs of everything that reads a file, found by atheris: those that reach new code are changed further.

``python -m tests.coverage_fuzzing --inputs 10000``; it needs ``pip install 'holdfast-rl[fuzz]'``. Checksums would
hide what lies behind them, so documents are in the format from before there were any, which is still read.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["holdfast"]):
    from holdfast.core.errors import InputError
    from holdfast.envs.grid_map import GridMap
    from holdfast.experiments.manifest import read_manifest
    from holdfast.files import read_arrays, read_json, read_rows, read_state
    from holdfast.policies.policy_files import load_policy
    from holdfast.runs import RunFolder
    from holdfast.runs.curves import learning_curves
    from holdfast.runs.options import read_options, stored_config
    from tests.fuzzing import MAP, SECONDS, TOML, originals

PLACES: dict[str, tuple[str, ...]] = {"tensors.safetensors": (), "replay.safetensors": ("agent", "replay")}


class Readers:
    """What reads each kind of file.

    Args:
        folder: To write to.
    """

    def __init__(self, folder: Path) -> None:
        originals(folder)
        self.run, self.network = folder / "table", folder / "network"
        for run in (self.run, self.network):
            for name in ("checkpoint/state.json", "policy/policy.json"):
                document = json.loads((run / name).read_text())
                del document["sha256"]
                (run / name).write_text(json.dumps({**document, "format": 1}))
        loose = folder / "loose"
        loose.mkdir()
        for name, text in (("map.txt", MAP), ("options.toml", TOML), ("manifest.json", "{}")):
            (loose / name).write_text(text)
        shutil.copy(self.run / "policy/policy.safetensors", loose / "arrays.safetensors")
        shutil.copy(folder / "kept/manifest.json", loose / "manifest.json")
        run, network = self.run, self.network
        self.kinds: list[tuple[Path, Callable[[], object]]] = [
            (run / "config.json", lambda: stored_config(read_options(run / "config.json"), run)),
            (run / "checkpoint/state.json", lambda: read_state(run / "checkpoint", PLACES)),
            (run / "checkpoint/tensors.safetensors", lambda: RunFolder(run).status()),
            (run / "policy/policy.json", lambda: load_policy(run)),
            (run / "policy/policy.safetensors", lambda: load_policy(run)),
            (network / "policy/policy.json", lambda: load_policy(network)),
            (run / "metrics.csv", lambda: (read_rows(run / "metrics.csv"), RunFolder(run).status())),
            (run / "evaluations.csv", lambda: learning_curves([run], "evaluation")),
            (loose / "arrays.safetensors", lambda: read_arrays(loose / "arrays.safetensors")),
            (loose / "map.txt", lambda: GridMap.read(loose / "map.txt")),
            (loose / "options.toml", lambda: read_options(loose / "options.toml")),
            (loose / "manifest.json", lambda: (read_manifest(loose), read_json(loose / "manifest.json"))),
        ]
        self.seeds = [path.read_bytes() for path, _ in self.kinds]

    def read(self, data: bytes) -> None:
        """Read one input: its first byte says as what.

        Raises:
            Exception: It was neither read nor refused in a sentence.
        """
        if not data:
            return
        number = data[0] % len(self.kinds)
        path, reader = self.kinds[number]
        path.write_bytes(data[1:])
        try:
            reader()
        except InputError as error:
            said = str(error)
            assert len(said) < 2000, said[:100]
        finally:
            path.write_bytes(self.seeds[number])


def main() -> None:
    """Look for such inputs; the process ends with 0 if none was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="how many are tried (default: 10000)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is drawn (default: the time)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-fuzz-") as folder:
        readers = Readers(Path(folder))
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for number, data in enumerate(readers.seeds):
            (corpus / str(number)).write_bytes(bytes([number]) + data)
            readers.read(bytes([number]) + data)
        os.chdir(folder)
        options = [f"-runs={given.inputs}", f"-seed={given.seed % 2**31 or 1}", f"-timeout={SECONDS}"]
        options += ["-rss_limit_mb=2048", "-max_len=20000"]
        atheris.Setup([sys.argv[0], *options, str(corpus)], readers.read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
