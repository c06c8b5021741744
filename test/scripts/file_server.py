"""A web server on loopback that gives parts of files, and can be told to misbehave."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer(ThreadingHTTPServer):
    """`files` by path. `faults` by path, one an answer, the first first:

    an int      breaks the connection off after so many bytes of the body
    "whole"     gives the whole file though a part was asked for
    "shifted"   gives a part that begins one byte too early
    "endless"   gives the file and more, without saying how long it is
    "404" etc.  answers with that code
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.faults: defaultdict[str, list[int | str]] = defaultdict(list)
        self.asked: list[tuple[str, str]] = []  # path, Range

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that goes away is no news


class Handler(BaseHTTPRequestHandler):
    server: FileServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.server.asked.append((self.path, wanted))
        faults = self.server.faults[self.path]
        fault = faults.pop(0) if faults else ""
        content = self.server.files.get(self.path)
        if content is None or (isinstance(fault, str) and fault.isdigit()):
            self.send_error(int(fault or 404))
            return
        begin = re.fullmatch(r"bytes=(\d+)-", wanted)
        start = int(begin[1]) if begin and fault != "whole" else 0
        if start >= len(content) and begin:
            self.send_error(416)
            return
        start -= fault == "shifted"
        body = content[start:]
        self.send_response(206 if begin and fault != "whole" else 200)
        if begin and fault != "whole":
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if fault == "endless":
            body += bytes(1 << 20)
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:fault] if isinstance(fault, int) else body)


@contextmanager
def serving() -> Iterator[FileServer]:
    with FileServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
