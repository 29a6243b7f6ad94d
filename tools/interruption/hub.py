"""A model hub on the loopback, as far as `hydrascope fetch` asks for one: files with ranges, sent slowly enough to be
interrupted."""
import hashlib
import http.server
import json
import threading
import time

REPOSITORY = "org/tiny"
COMMIT = hashlib.sha1(REPOSITORY.encode()).hexdigest()


def tag_of(name, content):
    """As the hub names contents: large files by their SHA-256, others as git does."""
    if name.endswith(".safetensors"):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub:
    """Serves `files` (name → bytes) at `url`. `sent`: bytes of large files that were put on the wire, `ranges`: answers
    to requests for the rest of a file."""

    def __init__(self, files, seconds=0.0):
        self.files, self.seconds, self.sent, self.ranges = files, seconds, 0, 0
        self.lock = threading.Lock()
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_HEAD(self):
                hub.answer(self, body=False)

            def do_GET(self):
                hub.answer(self, body=True)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *request: None  # the program was killed
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request, body):
        if request.path.startswith(f"/api/models/{REPOSITORY}"):
            listing = {"sha": COMMIT, "siblings": [{"rfilename": name} for name in self.files]}
            return self.send(request, 200, {"Content-Type": "application/json"}, json.dumps(listing).encode(), body)
        name = request.path.rpartition("/")[2]
        if name not in self.files:
            return self.send(request, 404, {"X-Error-Code": "EntryNotFound"}, b"", body)
        content, status = self.files[name], 200
        headers = {"ETag": f'"{tag_of(name, content)}"', "X-Repo-Commit": COMMIT}
        if name.endswith(".safetensors"):
            headers["X-Linked-Size"] = str(len(content))
        wanted = request.headers.get("Range")
        if wanted:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            if start >= len(content):
                return self.send(request, 416, headers, b"", body)
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            content, status = content[start:], 206
            with self.lock:
                self.ranges += 1
        return self.send(request, status, headers, content, body, slowly=name.endswith(".safetensors"), whole=self.files[name])

    def send(self, request, status, headers, content, body, slowly=False, whole=b""):
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if not body:
            return
        pieces = 50
        size = max(1, len(whole if slowly else content) // pieces)
        try:
            for at in range(0, len(content), size):
                piece = content[at:at + size]
                request.wfile.write(piece)
                if slowly:
                    with self.lock:
                        self.sent += len(piece)
                    time.sleep(self.seconds / pieces)
        except OSError:  # the program was killed
            request.close_connection = True
