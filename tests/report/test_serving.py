"""The page served: to this machine, under its own name, and nothing else."""

from __future__ import annotations

import http.client
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from holdfast.cli import main
from holdfast.report.serving import ADDRESS, PageServer
from tests.report.conftest import NASTY
from tests.runs.small_runs import NETWORK, TABLE, trained


@pytest.fixture
def serve():
    servers = []

    def begin(*what, **options):
        server = PageServer(what, every=0.0, **options)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


def port_of(server):
    return server.server_address[1]


def ask(server, path="/", **headers):
    connection = http.client.HTTPConnection(ADDRESS, port_of(server), timeout=60)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def ask_for_news(server, tag):
    """The page once it is another than the one with this tag."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        answer, body = ask(server, "/news", If_None_Match=tag)
        if answer.status != 304:
            return answer, body
        time.sleep(0.1)
    raise AssertionError("there is no news")


def raw(server, request):
    """The first line of what is answered to bytes."""
    with socket.create_connection((ADDRESS, port_of(server)), timeout=60) as connection:
        connection.sendall(request)
        return connection.makefile("rb").readline().decode("latin-1")


def test_it_listens_on_this_machine_alone(serve, tmp_path):
    server = serve(tmp_path)
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{port_of(server)}/"


def test_a_run_appears_and_grows(serve, tmp_path):
    server = serve(tmp_path)
    answer, body = ask(server, "/news")
    assert answer.status == 200
    assert b"No training has anything to show yet" in body
    trained(TABLE, tmp_path / "run")
    later, body = ask_for_news(server, answer.getheader("ETag"))
    assert b"PerQ-learning" in body
    same, nothing = ask(server, "/news", If_None_Match=later.getheader("ETag"))
    assert (same.status, nothing) == (304, b"")
    trained({**TABLE, "episodes": 40}, tmp_path / "run")
    grown, longer = ask_for_news(server, later.getheader("ETag"))
    assert grown.status == 200
    assert b">40 episodes<" in longer
    assert b">40<" not in body


def test_names_are_text_and_the_page_may_not_load_anything(serve, tmp_path):
    trained(TABLE, tmp_path / NASTY)
    answer, body = ask(serve(tmp_path))
    assert NASTY.encode() not in body
    assert b"default-src &#39;none&#39;" in body or b"default-src 'none'" in body
    assert answer.getheader("X-Content-Type-Options") == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "//etc/passwd",
        "/run/config.json",
        "/news/../../secret.txt",
        "/?file=../secret.txt",
        "http://127.0.0.1/secret.txt",
        "\\..\\secret.txt",
    ],
)
def test_no_path_leads_to_a_file(serve, tmp_path, path):
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (tmp_path / "inside").mkdir()
    server = serve(tmp_path / "inside")
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port_of(server)}\r\n\r\n".encode()
    assert raw(server, request).split()[1] == "404"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", ""])
def test_another_host_is_refused(serve, tmp_path, host):
    server = serve(tmp_path)
    answer, body = ask(server, Host=host.format(port=port_of(server)))
    assert answer.status == 403
    assert b"holdfast report" not in body


def test_without_a_host_nothing_is_answered(serve, tmp_path):
    assert raw(serve(tmp_path), b"GET / HTTP/1.1\r\n\r\n").split()[1] == "403"


@pytest.mark.parametrize(("port", "is_allowed"), [(80, True), (8080, False)])
def test_the_usual_port_may_be_left_out(serve, tmp_path, monkeypatch, port, is_allowed):
    server = serve(tmp_path)
    monkeypatch.setattr(server, "server_address", (ADDRESS, port))
    for name in (ADDRESS, "localhost"):
        assert server.allows_host(name) is is_allowed
        assert server.allows_host(f"{name}:{port}")
    assert not server.allows_host("evil.example")


@pytest.mark.parametrize("request_", ["", "GET / HT", "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"])
def test_nothing_is_said_of_a_client_that_leaves_in_the_middle(serve, tmp_path, capfd, monkeypatch, request_):
    left = threading.Event()
    shut = PageServer.shutdown_request
    monkeypatch.setattr(PageServer, "shutdown_request", lambda *given: (shut(*given), left.set()))
    server = serve(tmp_path)
    client = socket.create_connection((ADDRESS, port_of(server)), timeout=60)
    # It is not closed in good order, but reset.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sendall(request_.format(host=f"127.0.0.1:{port_of(server)}").encode())
    client.close()
    assert left.wait(60.0)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET /{long} HTTP/1.1\r\nHost: {host}\r\n\r\n", "414"),
        ("GET /{longest} HTTP/1.1\r\nHost: {host}\r\n\r\n", "414"),
        ("GET / HTTP/1.1\r\nHost: {host}\r\nX: {longest}\r\n\r\n", "431"),
        ("GET / HTTP/1.1\r\nHost: {host}\r\n{many}\r\n\r\n", "431"),
        ("GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9999999\r\n\r\n", "413"),
        ("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\n\r\nabc", "501"),
        ("nonsense\r\n\r\n", "400"),
        ("GET / NONSENSE/1.1\r\n\r\n", "400"),
        ("\x00\x01\x02\r\n\r\n", "400"),
    ],
)
def test_large_and_malformed_requests_are_refused(serve, tmp_path, request_, status):
    server = serve(tmp_path)
    filled = request_.format(
        host=f"127.0.0.1:{port_of(server)}",
        long="x" * 2000,
        longest="x" * 70_000,
        many="\r\n".join(f"X-{number}: 1" for number in range(200)),
    )
    answer = raw(server, filled.encode("latin-1"))
    # To nonsense the answer is in the manner of HTTP/0.9: a page without a head.
    assert status in answer or (status == "400" and "HTTP" not in answer)
    assert ask(server, "/news")[0].status == 200


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "there is no folder 'nowhere'"),
        (["here", "--port", "99999"], "--port must be from 0 (a free one) to 65535, not 99999"),
        (["here", "--port", "-1"], "--port must be from 0 (a free one) to 65535, not -1"),
    ],
)
def test_bad_input_is_told_in_one_sentence(tmp_path, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert main(["watch", *arguments]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_the_verb_says_where_to_look_and_stops_when_asked(tmp_path):
    command = [sys.executable, "-m", "holdfast", "watch", str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    def hear() -> None:
        """A shell lets the commands that it runs in the background ignore Ctrl-C, and so may the tests' own."""
        signal.signal(signal.SIGINT, signal.default_int_handler)

    with subprocess.Popen(command, preexec_fn=hear, **pipes) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("open http://127.0.0.1:")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "stopped watching\n", "")


def test_an_open_page_follows_the_training(browser, serve, tmp_path):
    trained(TABLE, tmp_path / "run")
    page = browser.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(serve(tmp_path).address)
    page.wait_for_selector("html[data-drawn]", timeout=60_000)
    assert page.locator("#curves .chart").count() == 1
    page.get_by_label("single seeds").check()
    trained(NETWORK, tmp_path / "other")
    page.locator("#curves .chart").nth(1).wait_for(timeout=60_000)
    assert page.get_by_label("single seeds").is_checked()
    assert complaints == []
    page.close()


def test_an_open_page_says_that_its_folder_is_gone_and_shows_it_again(browser, serve, tmp_path):
    inside = tmp_path / "inside"
    trained(TABLE, inside / "run")
    page = browser.new_page()
    page.goto(serve(inside).address)
    page.wait_for_selector("html[data-drawn]", timeout=60_000)
    inside.rename(tmp_path / "elsewhere")
    page.locator("#live", has_text="cannot be shown now").wait_for(timeout=60_000)
    (tmp_path / "elsewhere").rename(inside)
    page.locator("#live", has_text="watching").wait_for(timeout=60_000)
    page.close()


def test_a_folder_that_cannot_be_read_is_no_traceback(serve, tmp_path, monkeypatch, capfd):
    server = serve(tmp_path)

    def shut(*arguments):
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("holdfast.report.page.named_folders", shut)
    answer, _ = ask(server)
    assert answer.status == 503
    assert capfd.readouterr().err == ""
