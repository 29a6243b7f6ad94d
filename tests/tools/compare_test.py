"""tools/compare: rows take turns, and ratios are of one turn."""
import types
import unittest

from support import load

compare = load("compare")


class Row:
    """Takes as long as its turn says; notes its calls."""

    also = {}

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

    def test_each_turn_begins_with_another_row(self):
        self.case(a=[1, 1, 1], b=[1, 1, 1], c=[1, 1, 1])
        self.assertEqual(self.calls, ["a", "b", "c", "b", "c", "a", "c", "a", "b"])

    def test_ratios_are_of_one_turn(self):
        # Everything takes ten times as long in the second turn: the ratio does not change.
        other = self.case(a=[1, 10, 1], b=[2, 20, 4])["b"]
        self.assertEqual((other["ratio"], other["least"], other["most"]), (2, 2, 4))

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


if __name__ == "__main__":
    unittest.main()
