"""One process that has imported everything, and a child of it for each command that is typed.

Python needs seconds to import PyTorch, which the commands of all documents together would need a hundred times. A
server imports once; for every command it forks, and the child takes over the client's folder, variables, standard
input and output, and runs what ``holdfast`` runs. The client waits for its exit code.

Server: ``python -m tests.shell_server SOCKET``. Client: ``python tests/shell_server.py SOCKET WORD ...``.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
from pathlib import Path

_LARGEST = 1 << 20


def ask(path: str, words: list[str]) -> int:
    """Let a child of the server run a command; its exit code."""
    request = json.dumps({"words": words, "folder": str(Path.cwd()), "variables": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(path)
        socket.send_fds(client, [request], [0, 1, 2])
        return int(client.recv(16) or b"1")


def serve(path: str) -> None:
    """Wait for commands, for ever."""
    for name in ("matplotlib.figure", "stable_baselines3", "holdfast.deep", "holdfast.runs", "holdfast.tabular"):
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(path)
        server.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            client, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _answer(client)
            client.close()


def _answer(client: socket.socket) -> None:
    """In a child of the server: run one command in a child of its own, and say how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, handles, _, _ = socket.recv_fds(client, _LARGEST, 3)
    child = os.fork()
    if child == 0:
        client.close()
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
            os.close(handle)
        # Those of the server remember whether its own files could be sought in.
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
        _run(json.loads(message))
    _, status = os.waitpid(child, 0)
    client.send(str(os.waitstatus_to_exitcode(status) & 0xFF).encode())
    os._exit(0)


def _run(request: dict[str, object]) -> None:
    from tests.shell_blocks import run_holdfast

    code = 1
    try:
        os.chdir(str(request["folder"]))
        os.environ.clear()
        os.environ.update(request["variables"])  # type: ignore[call-overload]
        code = run_holdfast(list(request["words"]))  # type: ignore[call-overload]
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    if __package__:
        serve(sys.argv[1])
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
