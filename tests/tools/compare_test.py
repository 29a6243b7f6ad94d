"""tools/compare: rows take turns, and ratios are of one turn."""
import json
import pathlib
import sys
import tempfile
import types
import unittest

from support import load

compare = load("compare")


class Row:
    """Takes as long as its turn says; notes its calls."""

    def __init__(self, name, times, calls):
        self.name, self.times, self.calls = name, list(times), calls

    def turn(self, _):
        self.calls.append(self.name)
        return self.times.pop(0)


class CaseTest(unittest.TestCase):
    def case(self, **times):
        self.calls = []
        arguments = types.SimpleNamespace(turns=len(next(iter(times.values()))))
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
        compare.printed_json, before = lambda command: printed.append(command) or entries, compare.printed_json
        self.addCleanup(setattr, compare, "printed_json", before)
        rows = [compare.Program(arguments, "kernels"), compare.Program(arguments, "kernels", find=compare.products)]
        turn = {}
        self.assertEqual([row.turn(turn) for row in rows], [8, 2])
        self.assertEqual(len(printed), 1)

    def test_cases_measured_before_an_error_are_written(self):
        def broken(_):
            yield {"case": "second"}
            sys.exit("error: the third")

        with tempfile.TemporaryDirectory() as folder:
            arguments = types.SimpleNamespace(write=pathlib.Path(folder) / "times.json")
            document = {"command": "tools/compare a b", "cases": []}
            with self.assertRaises(SystemExit):
                compare.measure([lambda _: [{"case": "first"}], broken], arguments, document)
            self.assertEqual(json.loads(arguments.write.read_text()),
                             {"command": "tools/compare a b", "cases": [{"case": "first"}, {"case": "second"}]})

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
