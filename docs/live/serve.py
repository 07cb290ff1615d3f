"""Serves build/site on this machine, and opens it: `make learn`.

python docs/live/serve.py FOLDER [PORT]
"""

from __future__ import annotations

import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # asks whether a file is another
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing of each request."""


def server(folder: str, port: int = 0) -> ThreadingHTTPServer:
    """A server of the folder's files; port 0 is a free one."""
    return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=folder))


def main(folder: str, port: str = "8000") -> None:
    with server(folder, int(port)) as made:
        address = f"http://127.0.0.1:{made.server_port}/learn/index.html"
        print(f"{address}  (Ctrl-C ends it)", flush=True)
        webbrowser.open(address)
        try:
            made.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
