"""A package index on the loopback for the tests of tools/setup: tiny archives in place of the pinned ones."""
import hashlib
import http.server
import re
import threading
import time


class PackageIndex:
    """Serves archives, also as a proxy for any host; `requests` are the addresses that were asked for."""

    def __init__(self):
        self.archives = {}  # name → (file name, bytes)
        self.replaced = {}  # name → bytes that are sent instead
        self.cut = {}       # name → how many times less than half of it is sent
        self.pause = 0      # seconds between the pieces of an archive
        self.requests = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def add(self, maker, name, version, files):
        """Returns the pin as tools/versions.sh writes it."""
        self.archives[name] = maker(name, version, files)
        return f"{name} {version} {hashlib.sha256(self.archives[name][1]).hexdigest()}"

    def answer(self, path):
        """(status, body, name of the archive) for a path."""
        if found := re.fullmatch(r"/simple/([^/]+)/", path):
            if found[1] not in self.archives:
                return 404, b"", None
            file = self.archives[found[1]][0]
            return 200, f'<!DOCTYPE html><a href="/files/{found[1]}/{file}">{file}</a>'.encode(), None
        if (found := re.fullmatch(r"/files/([^/]+)/[^/]+", path)) and found[1] in self.archives:
            return 200, self.replaced.get(found[1], self.archives[found[1]][1]), found[1]
        return 404, b"", None

    def handler(self):
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                index.requests.append(self.path)
                status, body, archive = index.answer(re.sub(r"^http://[^/]+", "", self.path))
                self.send_response(status)
                self.send_header("Content-Type", "application/octet-stream" if archive else "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if archive and index.cut.get(archive, 0) > 0:
                    index.cut[archive] -= 1
                    body = body[:len(body) // 2]
                pieces = 8 if archive and index.pause else 1
                size = -(-len(body) // pieces) or 1
                try:
                    for at in range(0, len(body), size):
                        self.wfile.write(body[at:at + size])
                        self.wfile.flush()
                        time.sleep(index.pause if archive else 0)
                except ConnectionError:
                    pass  # it was killed

        return Handler
