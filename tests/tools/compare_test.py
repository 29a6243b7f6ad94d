"""tools/compare: rows take turns, and ratios are of one turn."""
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

from support import ROOT, load

import comparison
import peers

compare = load("compare")


class Row:
    """Takes as long as its turn says; notes its calls."""

    def __init__(self, name, times, calls):
        self.name, self.times, self.calls = name, list(times), calls

    def turn(self, _):
        self.calls.append(self.name)
        return self.times.pop(0)


class TimedTest(unittest.TestCase):
    """Runs of one length, but for the first, which takes ten times as long."""

    def timed(self, length, **request):
        self.runs = 0

        def once(_):
            self.runs += 1
            return 10 * length if self.runs == 1 else length

        return peers.timed(lambda: None, once, request)

    def test_the_first_run_is_not_the_whole_warm_up(self):
        self.assertEqual(self.timed(0.0625, seconds=0.6), [0.0625] * 10)  # until more than 0.6 s
        self.assertEqual(self.runs, 1 + 4 + 10)  # and four more than 0.2 s before

    def test_short_runs_are_repeated_thirty_times_and_long_ones_thrice(self):
        self.assertEqual(len(self.timed(0.0078125, seconds=0.6)), 30)
        self.assertEqual(len(self.timed(0.25, seconds=0.6)), 5)
        self.assertEqual(len(self.timed(4, seconds=0.6)), 3)

    def test_as_many_runs_as_asked_for(self):
        self.assertEqual(len(self.timed(4, runs=2, warm_ups=1)), 2)


class CaseTest(unittest.TestCase):
    def case(self, **times):
        self.calls = []
        arguments = types.SimpleNamespace(turns=len(next(iter(times.values()))), device="cpu")
        rows = {name: Row(name, of_row, self.calls) for name, of_row in times.items()}
        return {row["row"]: row for row in compare.case(arguments, "a case", 16, rows)["rows"]}

    def test_every_row_runs_once_a_turn_in_an_order_of_the_turn(self):
        self.case(a=[1, 1, 1], b=[1, 1, 1], c=[1, 1, 1])
        turns = [tuple(self.calls[i:i + 3]) for i in range(0, 9, 3)]
        self.assertEqual({"".join(sorted(turn)) for turn in turns}, {"abc"})
        self.assertGreater(len(set(turns)), 1)

    def test_ratios_are_of_one_turn(self):
        # Everything takes ten times as long in the second turn: the ratio does not change.
        other = self.case(a=[1, 10, 1], b=[2, 20, 4])["b"]
        self.assertEqual((other["ratio"], other["least"], other["most"]), (2, 2, 4))

    def test_what_was_not_measured_is_an_error(self):
        with self.assertRaises(SystemExit) as error:
            compare.median_ms([{"kernel": "softmax", "N": 7, "skipped": "too long"}])
        self.assertIn("softmax at 7 tokens was not measured: too long", str(error.exception))

    def test_rows_of_a_model_are_found_by_kind_and_schedule(self):
        arguments = types.SimpleNamespace(threads=1, batches=30, turns=5)
        rows, repetition = compare.model_rows(arguments, "FOLDER", 1)
        self.assertEqual(repetition, {"runs": 6, "warm_ups": 2})
        entries = [{"kind": "schedule", "schedule": name, "median_ms": ms}
                   for name, ms in (("flash", 1), ("softmax", 2), ("sdpa", 3), ("hydra-cosine", 4))]
        entries += [{"kind": "without attention", "schedule": "no attention", "median_ms": 5},
                    {"kind": "products", "schedule": "products", "median_ms": 6}]
        self.assertEqual([row.find(entries) for row in rows.values()], [1, 2, 3, 4, 5, 6, 1, 4, 6])
        with self.assertRaises(SystemExit):
            next(iter(rows.values())).find(entries[1:])

    def test_a_command_that_several_rows_read_runs_once_a_turn(self):
        arguments = types.SimpleNamespace(threads=1)
        entries = [{"median_ms": 8, "share_of_flops": 0.25}]
        printed = []
        comparison.printed_json, before = lambda command: printed.append(command) or entries, comparison.printed_json
        self.addCleanup(setattr, comparison, "printed_json", before)
        rows = [compare.Program(arguments, "kernels"), compare.Program(arguments, "kernels", find=compare.products)]
        turn = {}
        self.assertEqual([row.turn(turn) for row in rows], [8, 2])
        self.assertEqual(len(printed), 1)

    def test_cases_measured_before_an_error_are_written(self):
        def broken(_):
            yield {"case": "second"}
            sys.exit("error: the third")

        def empty(_):
            yield sys.exit("error: the first")

        for sections, words, cases in (
                ({"a": lambda _: [{"case": "first"}], "b": broken, "c": empty}, "a b", ["first", "second"]),
                ({"a": lambda _: [{"case": "first"}], "c": empty, "b": broken}, "a", ["first"])):
            with tempfile.TemporaryDirectory() as folder:
                arguments = types.SimpleNamespace(write=pathlib.Path(folder) / "times.json", threads=2, turns=1, batches=30,
                                                  device="cpu", long=True)
                with self.assertRaises(SystemExit):
                    compare.measure(sections, arguments, {"command": "", "cases": []})
                self.assertEqual(json.loads(arguments.write.read_text()),
                                 {"command": f"tools/compare {words} --threads 2 --turns 1 --batches 30 --long",
                                  "cases": [{"case": case} for case in cases]})

    def test_a_peer_lives_for_one_turn_on_the_cpu_and_for_all_on_a_gpu(self):
        code = "import os\nprint('ready', flush=True)\nfor _ in sys.stdin: print(json.dumps({'ms': [os.getpid()]}), flush=True)"
        for device, same in (("cpu", False), ("cuda", True)):
            with self.peers_are(code):
                first, second = self.measured(device, "sdpa")
            self.assertEqual(first == second, same)
            for process in (first, second):
                self.assertFalse(pathlib.Path(f"/proc/{process}").exists())

    def test_a_peer_that_fails_says_why_and_ends_the_others(self):
        code = ("import os, time\nif json.loads(sys.argv[1])['peer'] == 'broken': time.sleep(0.5); sys.exit('no GPU')\n"
                "open(os.environ['STARTED'], 'w').write(str(os.getpid()))\nprint('ready', flush=True)\nsys.stdin.read()")
        with tempfile.TemporaryDirectory() as folder, self.peers_are(code):
            started = pathlib.Path(folder) / "process"
            with unittest.mock.patch.dict("os.environ", STARTED=str(started)), self.assertRaises(SystemExit) as error:
                self.measured("cuda", "sdpa", "broken")
            self.assertEqual(str(error.exception), "error: broken: no GPU")
            self.assertFalse(pathlib.Path(f"/proc/{started.read_text()}").exists())

    def measured(self, device, *peers):
        """The times of the first one in two turns."""
        arguments = types.SimpleNamespace(threads=1, turns=2, device=device)
        return comparison.measured(arguments, {name: compare.Peer(arguments, {}, {}, name) for name in peers})[peers[0]]

    @contextlib.contextmanager
    def peers_are(self, code):
        """In place of tools/peers.py, whose PyTorch tests do not have."""
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(comparison, "ROOT", pathlib.Path(folder)):
            (pathlib.Path(folder) / "tools").mkdir()
            (pathlib.Path(folder) / "tools/peers.py").write_text(f"import json, sys\n{code}\n")
            yield

    def test_a_command_names_a_gpu(self):
        arguments = types.SimpleNamespace(threads=2, turns=3, batches=30, device="cuda:1", long=False)
        self.assertEqual(compare.command_of(arguments, ["hydra"]),
                         "tools/compare hydra --threads 2 --turns 3 --batches 30 --device cuda:1")

    def test_counts_below_one_are_refused(self):
        for words in (["--turns", "0"], ["--turns", "-1"], ["--batches", "0"], ["--threads", "1.5"]):
            ended = subprocess.run([sys.executable, str(ROOT / "tools/compare"), "hydra", *words], capture_output=True,
                                   text=True)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(f"{words[0]}: {words[1]} is no whole number from 1 on", ended.stderr)

    def rows_of(self, section, device="cpu", long=False):
        """The rows that a section would measure, by its number of tokens."""
        compare.case, before = lambda _, title, tokens, rows, batch=1: (tokens, rows), compare.case
        self.addCleanup(setattr, compare, "case", before)
        comparison.jemalloc, of_machine = dict, comparison.jemalloc
        self.addCleanup(setattr, comparison, "jemalloc", of_machine)
        return dict(section(types.SimpleNamespace(threads=1, turns=1, device=device, long=long)))

    def test_hedgehog_stands_beside_softmax_and_its_bound_in_both_types(self):
        rows = self.rows_of(compare.hedgehog)[4096]
        entries = [{"median_ms": 8, "share_of_flops": 0.25}]
        for dtype, addition in (("float32", ""), ("bfloat16", ", bfloat16")):
            bound = rows[f"bound: its products at the machine's {dtype} rate"]
            own = rows[f"hedgehog{addition}"]
            self.assertEqual((bound.command, bound.find(entries), own.find(entries)), (own.command, 2, 8))
            for name in ("softmax: explicit weights", "sdpa: PyTorch's, called here", "flash: own"):
                self.assertIn(dtype, rows[name + addition].command)
        compiled = [row.request["settings"]["compiled"] for name, row in rows.items() if "the same in PyTorch" in name]
        self.assertEqual(compiled, [False, False, True, True])
        self.assertFalse(any("bfloat16" in name for name in self.rows_of(compare.hedgehog, "cuda")[4096]))

    def test_the_bounds_of_hydra_come_from_its_own_command(self):
        rows = self.rows_of(compare.hydra)[65536]
        entries = [{"median_ms": 8, "bytes_per_second": 30, "share_of_bandwidth": 0.75, "read_bytes_per_second": 60}]
        found = {name: row.find(entries) for name, row in rows.items() if row.__class__ is compare.Program}
        self.assertEqual(found, {"hydra-cosine": 8, "bound: a triad over as many bytes": 6,
                                 "bound: reading as many bytes": 4})
        self.assertEqual(len({tuple(rows[name].command) for name in found}), 1)

    def test_a_loop_takes_the_median_of_its_repetitions(self):
        printed = [{"run_type": "iteration", "bytes_per_second": rate} for rate in (100, 400, 200)]
        printed.append({"run_type": "aggregate", "bytes_per_second": 1})
        before, comparison.printed_by_loops = comparison.printed_by_loops, lambda _: {"benchmarks": printed}
        self.addCleanup(setattr, comparison, "printed_by_loops", before)
        self.assertEqual(comparison.Loop("a loop", moved=50).turn({}), 250)

    def test_long_rows_are_measured_only_where_asked_for(self):
        def added(section, tokens):
            short, long = self.rows_of(section)[tokens], self.rows_of(section, long=True)[tokens]
            return [name for name in long if name not in short]
        self.assertEqual(added(compare.hydra, 4096), [])
        self.assertEqual(added(compare.hydra, 65536), ["sdpa: PyTorch's, called here", "flash: own"])
        self.assertEqual(added(compare.hedgehog, 32768),
                         ["softmax: scaled_dot_product_attention in PyTorch, one run a turn", "softmax: explicit weights",
                          "flash: own"])

    def test_memory_is_that_of_the_command_alone(self):
        own = bytearray(200 << 20)  # of the process that asks
        peak = compare.peak_bytes([sys.executable, "-S", "-c", "kept = bytearray(60 << 20)"])
        self.assertGreater(peak, 60 << 20)
        self.assertLess(peak, 120 << 20)
        self.assertEqual(len(own), 200 << 20)

    def test_a_command_that_fails_has_no_memory(self):
        with self.assertRaises(SystemExit) as error:
            compare.peak_bytes([sys.executable, "-S", "-c", "import sys; sys.exit('a reason')"])
        self.assertIn("a reason", str(error.exception))


if __name__ == "__main__":
    unittest.main()
