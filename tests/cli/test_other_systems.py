"""The everyday verbs where the system lacks what only POSIX has.

This takes away from a process on Linux what Windows does not have. It shows that holdfast asks for none of it; it
is no test of another system.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import ROOT

MISSING = """
import os, signal, sys

# Other packages know which system they are on, and may use what it has: they come first.
import gymnasium, matplotlib.figure, numba, PIL.ImageFont, scipy.sparse.linalg, tensorboard
import matplotlib.backends.backend_agg
if "torch" in sys.argv:
    import stable_baselines3

MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
for name in [name for name in sys.modules if name.partition(".")[0] in MODULES | {"filelock"}]:
    del sys.modules[name]


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
for name in (
    "O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_SYNC SEEK_DATA SEEK_HOLE "
    "fchdir fchmod fchown fork forkpty getegid geteuid getgid getloadavg getpgid getpgrp getpriority getsid "
    "getuid initgroups killpg lockf mkfifo mknod nice openpty pread preadv pwrite pwritev sched_getaffinity "
    "sched_yield sendfile setegid seteuid setgid setpgid setpriority setsid setuid statvfs sync sysconf ttyname "
    "uname wait wait3 wait4 waitid getxattr posix_fadvise posix_fallocate posix_spawn"
).split():
    if hasattr(os, name):
        delattr(os, name)
os.supports_dir_fd = set()
os.supports_fd = {os.stat, os.truncate}
os.supports_follow_symlinks = {os.stat}
for name in [name for name in dir(signal) if name.startswith("SIG") and not name.startswith("SIG_")]:
    if name not in ("SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM"):
        delattr(signal, name)
for name in "alarm getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt sigwait".split():
    delattr(signal, name)
"""

VERBS = """
import json
from pathlib import Path

from holdfast.cli import main
from holdfast.files import FolderInUseError, folder_in_use, locked_folder, steps

assert not steps.HAS_HANDLES
codes = {}
for line in json.loads(sys.argv[1]):
    codes[line] = main(line.split())
with locked_folder(Path("runs/table")):
    assert folder_in_use(Path("runs/table"))
    try:
        with locked_folder(Path("runs/table")):
            raise AssertionError
    except FolderInUseError as error:
        codes[str(error)] = os.getpid()
used = MODULES & set(sys.modules)
Path("codes.json").write_text(json.dumps([codes, sorted(used)]))
"""

TABLE = "cliff --algo perq --k-max 3 --eval-every 5 --eval-episodes 2 --name table --quiet"
NETWORK = (
    "CartPole-v1 --k-max 3 --eval-every 30 --eval-episodes 2 --name network --quiet --set batch_size=4 "
    "learning_starts=10 head_arch=[4] buffer_size=100"
)
LINES = {
    "table": [
        "solve cliff --k-max 3 -o solved",
        f"train {TABLE} --episodes 12",
        f"train {TABLE} --episodes 20",
        "evaluate runs/table --episodes 2 -o pictures",
        "runs",
        "plot runs -o curves.png",
        "plot runs --show evaluation -o evaluations.svg",
        "explore cliff -o explored",
    ],
    "torch": [
        f"train {NETWORK} --steps 60",
        f"train {NETWORK} --steps 90",
        f"train {TABLE} --episodes 5",
        "evaluate runs/network --episodes 2",
        "runs",
        "plot runs -o curves.png",
        "explore CartPole-v1 --budget 500 -o explored",
    ],
}


@pytest.mark.parametrize("kind", ["table", pytest.param("torch", marks=pytest.mark.slow)])
def test_the_everyday_verbs_need_nothing_that_only_posix_has(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MISSING + VERBS, json.dumps(LINES[kind]), kind]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    codes, used = json.loads((tmp_path / "codes.json").read_text())
    *lines, in_use = codes
    assert {line: codes[line] for line in lines} == dict.fromkeys(LINES[kind], 0), done.stderr
    assert in_use == f"{Path('runs/table')} is in use by process {codes[in_use]}"
    assert used == []
    assert [path.name for path in (tmp_path / "runs" / "table").glob(".*")] == [".lock"]


def test_a_run_goes_on_where_it_was_left_on_such_a_system(tmp_path: Path) -> None:
    """What was written there is read here, and ends as what was written here."""
    line = f"train {TABLE} --episodes "
    there, here = tmp_path / "there", tmp_path / "here"
    for folder in (there, here):
        folder.mkdir()
    command = [sys.executable, "-c", MISSING + VERBS, json.dumps([f"{line}12"]), "table"]
    subprocess.run(command, cwd=there, capture_output=True, check=True, timeout=300)
    shutil.copytree(there / "runs", here / "runs")
    subprocess.run([*command[:3], json.dumps([f"{line}30"]), "table"], cwd=there, check=True, timeout=300)
    program = [sys.executable, "-m", "holdfast", *f"{line}30".split()]
    subprocess.run(program, cwd=here, check=True, timeout=300)
    for name in ("metrics.csv", "evaluations.csv", "holds.csv", "policy/policy.safetensors"):
        assert (there / "runs/table" / name).read_bytes() == (here / "runs/table" / name).read_bytes()


def test_the_classifiers_promise_no_system_that_was_not_tried() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert text.count("Operating System ::") == 1
    assert '"Operating System :: POSIX :: Linux"' in text
    assert "simulated" in (ROOT / "docs" / "contributing.md").read_text()
