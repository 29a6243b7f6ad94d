"""What tools/compare compares: rows, each of a command of `bench` or of a peer, which take turns."""
import contextlib
import json
import os
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

from experiment import LOOPS, PROGRAM, ROOT, printed_by_loops, printed_json


def median_ms(entries):
    return measured_entry(entries)["median_ms"]


def measured_entry(entries):
    if "skipped" in entries[0]:
        sys.exit(f"error: {entries[0]['kernel']} at {entries[0]['N']} tokens was not measured: {entries[0]['skipped']}")
    return entries[0]


class Program:
    """A command of `bench`; find(entries) gives the milliseconds."""

    def __init__(self, arguments, *words, find=median_ms):
        self.command = [PROGRAM, "bench", *words, "--threads", str(arguments.threads), "--json"]
        self.find = find

    def turn(self, printed):
        """`printed`: what commands printed in this turn, since several rows may read one of them."""
        key = shlex.join(self.command)
        if key not in printed:
            printed[key] = printed_json(self.command)
        return self.find(printed[key])


class Loop:
    """A benchmark of build/cpu_loops; turn() gives the milliseconds of moving `moved` bytes, the median of its repetitions."""

    def __init__(self, name, moved):
        self.options = [f"--benchmark_filter=^{name}$", "--benchmark_repetitions=5", "--benchmark_min_time=0.1"]
        self.moved = moved

    def turn(self, _):
        return statistics.median(1e3 * self.moved / one["bytes_per_second"]
                                 for one in printed_by_loops(self.options)["benchmarks"] if one["run_type"] == "iteration")


def loops_on_two_threads(loops, tokens, moved):
    """A row of each of {title: loop}; none where build/cpu_loops has not been built, or finds no AVX-512."""
    if not LOOPS.exists():
        return {}
    known = subprocess.run([LOOPS, "--benchmark_list_tests"], capture_output=True, text=True).stdout.split()
    names = {title: f"{loop}/avx512/{tokens}/real_time/threads:2" for title, loop in loops.items()}
    return {title: Loop(name, moved) for title, name in names.items() if name in known}


class PeerProcess:
    """tools/peers.py as it runs, until the block that it is made for ends."""

    def __init__(self, request, environment):
        self.name, self.errors = request["peer"], tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, ROOT / "tools/peers.py", json.dumps(request)], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def line(self):
        """The next line that it prints; the first one says that it is ready."""
        if line := self.process.stdout.readline():
            return line
        status = self.process.wait()
        self.errors.seek(0)
        message = self.errors.read().strip().splitlines() or [f"exit status {status}"]
        sys.exit(f"error: {self.name}: {message[-1]}")

    def turn(self):
        with contextlib.suppress(BrokenPipeError):  # it has ended, and line() says why
            self.process.stdin.write("turn\n")
        return json.loads(self.line())


class Peer:
    """A peer of tools/peers.py. On the CPU its process lives for one turn: what it keeps disturbs no other row. On a GPU
    `process` lives for all turns of a case: to start it takes longer than to measure it."""

    def __init__(self, arguments, allocator, repetition, name, **settings):
        self.environment = {**os.environ, **allocator}
        self.request = {"peer": name, "threads": arguments.threads, **repetition,
                        "settings": {"device": arguments.device, **settings}}
        self.process = None

    def start(self):
        return PeerProcess(self.request, self.environment)

    def printed(self):
        if self.process is not None:
            return self.process.turn()
        with self.start() as process:
            process.line()
            return process.turn()

    def turn(self, _):
        return statistics.median_low(self.printed()["ms"])  # as the program's medians

    def memory(self):
        """Bytes."""
        found = self.printed()
        return {"bytes": found["peak_bytes"], "libraries_bytes": found["libraries_bytes"]}


# A child's peak is at least what its parent holds when it starts it; so the parent is this.
SMALL_PARENT = """
import os, sys
silent = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[silent])
_, status, usage = os.wait4(child, 0)
print(1024 * usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_bytes(command):
    """Peak resident memory of a command."""
    ended = subprocess.run([sys.executable, "-S", "-c", SMALL_PARENT, *command], capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"error: {shlex.join(map(str, command))}: {ended.stderr.strip() or f'exit status {ended.returncode}'}")
    return int(ended.stdout)


def jemalloc():
    """Environment that makes a process use the program's allocator and settings."""
    printed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    found = re.findall(r"libjemalloc\.so\.2 .*=> (\S+)", printed)
    settings = re.search(r'"(narenas[^"]*)"', (ROOT / "engine/base/process_memory.cpp").read_text())
    if not found:
        sys.exit("error: libjemalloc.so.2 is missing; install Debian's libjemalloc2")
    return {"LD_PRELOAD": found[0], "MALLOC_CONF": settings.group(1)}


def both_allocators(arguments, title, repetition, name, **settings):
    rows = {title: Peer(arguments, {}, repetition, name, **settings)}
    if arguments.device == "cpu":
        rows[f"{title}, jemalloc"] = Peer(arguments, jemalloc(), repetition, name, **settings)
    return rows


def measured(arguments, rows):
    """Milliseconds of each row in each turn; rows take turns."""
    names, times = list(rows), {name: [] for name in rows}
    peers = [row for row in rows.values() if isinstance(row, Peer) and arguments.device != "cpu"]
    with contextlib.ExitStack() as processes:
        for peer in peers:
            peer.process = processes.enter_context(peer.start())
        for peer in peers:
            peer.process.line()  # ready: others that still start would slow a row
        for turn in range(arguments.turns):
            printed = {}
            for name in random.Random(turn).sample(names, len(names)):
                times[name].append(rows[name].turn(printed))
    return times


def case(arguments, title, tokens, rows, batch=1):
    """Measures and prints rows; the first is what the others are compared with."""
    times = measured(arguments, rows)
    own = next(iter(times.values()))
    print(f"\n{title}, {tokens:,} tokens, batch {batch}")
    result = []
    for name, values in times.items():
        ratios = [value / of_own for value, of_own in zip(values, own, strict=True)]
        result.append({"row": name, "ms": values, "ratio": statistics.median(ratios), "least": min(ratios),
                       "most": max(ratios)})
        print(f"  {name:72} {statistics.median(values):11,.2f} ms {result[-1]['ratio']:8.2f} x "
              f"({min(ratios):.2f} … {max(ratios):.2f})", flush=True)
    return {"case": title, "tokens": tokens, "batch": batch, "rows": result}
