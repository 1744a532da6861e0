"""The same jobs on Ray: the same rows, lost workers replaced, and nobody outside can reach it."""

from __future__ import annotations

import importlib.util
import ipaddress
import secrets
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.experiments.engines import ray as ray_engine
from tests.experiments.campaigns import begin, contents, finish, is_alive, prepare, wait_until
from tests.experiments.ladders import SLIPPING

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'holdfast-rl[ray]'"
)


def listening(variable: str) -> set[tuple[str, str]]:
    """Names of the processes with this in their environment, and the addresses that they listen on."""
    inodes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if variable.encode() not in (folder / "environ").read_bytes():
                continue
            name = (folder / "comm").read_text().strip()
            for handle in (folder / "fd").iterdir():
                found = str(handle.readlink())
                if found.startswith("socket:["):
                    inodes[found[8:-1]] = name
        except OSError:
            continue
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and rest[5] in inodes:
                number = bytes.fromhex(local.partition(":")[0])
                words = [number[n : n + 4][::-1] for n in range(0, len(number), 4)]
                addresses.add((inodes[rest[5]], str(ipaddress.ip_address(b"".join(words)))))
    return addresses


def is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address)
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


@needs_ray
@pytest.mark.slow
def test_ray_gives_the_rows_that_processes_give_and_replaces_a_worker_that_died(tmp_path: Path) -> None:
    prepare(tmp_path)
    token = secrets.token_hex(8)
    process = begin(
        tmp_path, "ladders:SLIPPING", "-o", "ray", "--engine", "ray", "--jobs", "2", HOLDFAST_TEST_TRIAL=token
    )
    addresses: set[tuple[str, str]] = set()
    while process.poll() is None:
        addresses |= listening(f"HOLDFAST_TEST_TRIAL={token}")
        time.sleep(0.2)
    code, out, err = finish(process)
    assert (code, err) == (0, "")
    assert out.startswith("slipping: 4 of 4 jobs done, in ")
    assert (tmp_path / "ray.slipped").exists()
    # On the machine itself and nowhere else.
    assert {"gcs_server", "raylet"} <= {name for name, _ in addresses}
    assert [address for _, address in addresses if not is_loopback(address)] == []
    # Here the one who slips has failed, and does not when it is tried again.
    code, out, _ = finish(begin(tmp_path, "ladders:SLIPPING", "-o", "local", "--jobs", "2"))
    assert code == 1
    assert out.startswith("slipping: 3 of 4 jobs done, 1 failed, in ")
    code, out, _ = finish(begin(tmp_path, "ladders:SLIPPING", "-o", "local", "--jobs", "2", "--resume"))
    assert code == 0
    assert out.startswith("slipping: 4 of 4 jobs done, 1 of them now, in ")
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    assert len(contents(tmp_path / "ray")) == len(SLIPPING.jobs("smoke"))


@needs_ray
@pytest.mark.slow
def test_a_campaign_on_ray_stops_when_it_is_told_to(tmp_path: Path) -> None:
    prepare(tmp_path)
    process = begin(tmp_path, "ladders:WAITING", "-o", "c", "--engine", "ray", "--jobs", "2")
    marks = [tmp_path / f"waiting-{seed}" for seed in range(2)]
    assert wait_until(lambda: all(mark.exists() and mark.read_text() for mark in marks), seconds=280.0)
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert code == 128 + signal.SIGTERM
    assert err == "holdfast reproduce: stopped; type the command again with --resume to continue\n"
    assert out.startswith("waiting: 0 of 2 jobs done, in ")
    workers = [int(mark.read_text().split()[0]) for mark in marks]
    assert wait_until(lambda: not any(map(is_alive, workers)))


@needs_ray
@pytest.mark.slow
def test_jobs_on_ray_that_take_too_long_or_fail_are_ended_and_tried_again(tmp_path: Path) -> None:
    prepare(tmp_path)
    limits = ("--engine", "ray", "--jobs", "2", "--job-timeout", "20", "--retries", "1")
    code, out, err = finish(begin(tmp_path, "ladders:WAITING", "-o", "c", *limits))
    assert (code, err) == (1, "")
    assert out.count("it took longer than 20 s and was ended (2 tries)") == 2
    workers = [int((tmp_path / f"waiting-{seed}").read_text().split()[0]) for seed in range(2)]
    assert wait_until(lambda: not any(map(is_alive, workers)))
    code, out, _ = finish(begin(tmp_path, "ladders:FALLING", "-o", "f", *limits))
    assert code == 1
    assert "    ValueError: the ladder is too short (2 tries)\n" in out


@needs_ray
def test_a_limit_on_a_cluster_needs_a_number_of_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "tabular", "--engine", "ray", "--address", "auto", "--job-timeout", "5"]
    assert main([*command, "-o", str(tmp_path / "c")]) == 2
    assert "--jobs must be given with --job-timeout on a cluster" in capsys.readouterr().err


def test_without_ray_the_sentence_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["reproduce", "tabular", "--engine", "ray", "-o", str(tmp_path / "c")]) == 2
    assert capsys.readouterr().err == (
        "holdfast reproduce: the Ray engine needs Ray, which is not installed: pip install 'holdfast-rl[ray]'\n"
    )
    assert not (tmp_path / "c").exists()


@needs_ray
def test_a_cluster_that_is_not_there_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ray_engine, "_ANSWER", 2.0)
    command = ["reproduce", "tabular", "--engine", "ray", "-o", str(tmp_path / "c"), "--address"]
    wanted = "holdfast reproduce: --address must be that of a running Ray cluster, and"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        assert main([*command, address]) == 2
    assert capsys.readouterr().err == f"{wanted} {address} cannot be reached: Connection refused\n"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert main([*command, address]) == 2
    assert capsys.readouterr().err == f"{wanted} {address} cannot be reached: no cluster answered within 2 s\n"
    assert main([*command, "somewhere"]) == 2
    assert capsys.readouterr().err.startswith("holdfast reproduce: --address must be host:port of a Ray cluster")
    assert not (tmp_path / "c").exists()
