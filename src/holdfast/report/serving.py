"""The page served while training goes on: to this machine alone, and nothing but the page."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from holdfast.core.errors import InputError
from holdfast.report.finding import named_folders
from holdfast.report.page import make_report, need_libraries

__all__ = ["ADDRESS", "PageServer"]

ADDRESS = "127.0.0.1"
"""The only address that is listened on: this machine's own."""
_LARGEST_PORT = 65_535
_LONGEST_PATH = 1024
_PATIENCE = 10.0
"""Seconds that a client may take to say what it wants."""
_SHARE = 4.0
"""How many times as long as it took to make, a page is at least shown before the folders are read again."""


class PageServer(ThreadingHTTPServer):
    """Serves the report of some folders, read anew when somebody asks and it is older than ``every`` seconds.

    There are two things to ask for: ``/``, the page, and ``/news``, the same without the plotting library, for a
    page that is open. Nothing else is there, whatever a path says: no request names a file.

    Args:
        what: The folders, as in ``make_report``; they may be empty.
        port: Port to listen on; 0 for a free one.
        title: Heading of the page.
        every: Seconds after which the folders are read again.

    Raises:
        ValueError: A folder is none, a library is missing, or the port is taken.
    """

    daemon_threads = True

    def __init__(
        self, what: Sequence[str | os.PathLike[str]], port: int = 0, title: str | None = None, every: float = 2.0
    ) -> None:
        need_libraries()
        if not 0 <= port <= _LARGEST_PORT:
            raise InputError(f"port must be from 0 (a free one) to {_LARGEST_PORT}, not {port}", "port")
        self._folders = named_folders(what)
        self._title, self._every = title, every
        self._lock = threading.Lock()
        self._pages: dict[str, bytes] = {}
        self._tag, self._old_at = "", 0.0
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"port must be free, or 0, and {port} is not: {reason}", "port") from None

    @property
    def address(self) -> str:
        """What a browser is told."""
        return f"http://{ADDRESS}:{self.server_address[1]}/"

    def allows_host(self, host: str | None) -> bool:
        """Whether a request means this server by name: a page elsewhere that calls us by its own name does not."""
        port = self.server_address[1]
        # Browsers leave out the port that is usual.
        ends = (f":{port}", "") if port == HTTP_PORT else (f":{port}",)
        return host in {name + end for name in (ADDRESS, "localhost") for end in ends}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that leave in the middle, as browsers do."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def content(self, path: str) -> tuple[bytes, str]:
        """The page under a path, and a tag that changes with what was found."""
        with self._lock:
            if time.monotonic() >= self._old_at:
                self._read()
            return self._pages[path], self._tag

    def _read(self) -> None:
        began = time.monotonic()
        # No pictures: policies that change all the time would be played again and again.
        report = make_report(self._folders, self._title, pictures=False, may_be_empty=True)
        news = report.html(is_live=True, with_library=False, is_dated=False).encode()
        tag = f'"{hashlib.sha256(news).hexdigest()[:16]}"'
        if tag != self._tag:
            self._pages = {"/news": news, "/": report.html(is_live=True).encode()}
            self._tag = tag
        took = time.monotonic() - began
        self._old_at = time.monotonic() + max(self._every, _SHARE * took)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout: ClassVar[float] = _PATIENCE
    server_version = "holdfast"
    sys_version = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer, or say in a word why not."""
        self._answer(has_body=True)

    def do_HEAD(self) -> None:
        """The same without the page."""
        self._answer(has_body=False)

    def _answer(self, has_body: bool) -> None:
        if not self.server.allows_host(self.headers.get("Host")):
            self._refuse(HTTPStatus.FORBIDDEN)
        elif self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        elif len(self.path) > _LONGEST_PATH:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG)
        elif self.path not in ("/", "/news"):
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            try:
                page, tag = self.server.content(self.path)
            except (InputError, OSError):
                # A folder that was named is gone or cannot be read, or has more than a page can show.
                self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
                return
            if self.headers.get("If-None-Match") == tag:
                self._head(HTTPStatus.NOT_MODIFIED, tag, 0)
                return
            self._head(HTTPStatus.OK, tag, len(page))
            if has_body:
                self.wfile.write(page)

    def _head(self, status: HTTPStatus, tag: str, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(length))
        self.send_header("ETag", tag)
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()

    def _refuse(self, status: HTTPStatus) -> None:
        # Whoever sends something else may send more of it.
        self.close_connection = True
        self.send_error(status)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing: whoever watches does not want to read of it."""
