"""tools/results: tables are what raw files give, numbers of a text are in its tables or derived, raw files say how they
were made."""
import json
import shutil
import unittest

from support import ROOT, ToolTest

from prose_numbers import cell_numbers, is_among, measured_numbers, named_values
from result_tables import error_of_matthews

TEXT = """# A page

## Maps in a row

Of maps, {text}

<!-- table: carry-long -->
| maps | sentences | 256 | 1,024 | 4,096 |
|---|---|--:|--:|--:|
| bundled | queries and keys of each joined | 0.110 ± 0.002 | 0.210 ± 0.002 | 0.310 |
| CoLA | queries and keys of each joined | 0.120 ± 0.002 | 0.220 ± 0.002 | 0.320 |
| bundled | fed as one text | 0.130 ± 0.002 | 0.230 ± 0.002 | 0.330 |
| CoLA | fed as one text | 0.140 ± 0.002 | 0.240 ± 0.002 | 0.340 |

## Another section

Here 99.9 % is in no raw file.
"""
VALUES = {"carry-long-bundled": 0.01, "carry-long-cola": 0.02, "carry-joined-bundled": 0.03, "carry-joined-cola": 0.04}


class CheckTest(ToolTest):
    """A checkout with these tools, four raw files and one page."""

    def setUp(self):
        super().setUp()
        self.root = self.folder / "checkout"
        self.raw, self.page = self.root / "docs/measurements/raw", self.root / "docs/page.md"
        self.raw.mkdir(parents=True)
        (self.root / "tools").mkdir()
        for name in ("results", "compare_tables.py", "goals_table.py", "readme_table.py", "result_tables.py",
                     "speed_tables.py", "vision_tables.py", "table_registry.py", "experiment.py", "whole_file.py", "prose_numbers.py"):
            shutil.copy(ROOT / "tools" / name, self.root / "tools")
        shutil.copy(ROOT / "docs/measurements/raw/papers.json", self.raw)
        (self.root / "README.md").write_text("# Nothing\n")
        for name, first in VALUES.items():
            lengths = [{"length": length, "kl": first + i / 10, "kl_standard_error": error, "share": 0.4567,
                        "note": "of 0.777"}
                       for i, (length, error) in enumerate([(256, 0.002), (1024, 0.002), (4096, None)], 1)]
            document = {"command": "hydrascope kl --limit 0.888", "output": lengths}
            (self.raw / f"{name}.json").write_text(json.dumps(document))
        self.write("0.11 is the smallest")

    def write(self, text):
        self.page.write_text(TEXT.format(text=text))

    def results(self, *words):
        return self.tool("results", *words, root=self.root)

    def complaints(self, text):
        self.write(text)
        done = self.results("--check")
        self.assertEqual(done.returncode, 1 if "error" in done.stdout else 0, done.stderr)
        return [line for line in done.stdout.splitlines() if line.startswith("error")]

    def test_passes_where_everything_is_right(self):
        text = "0.11 to 0.34 nats; 11 to 34 %. So `--rate 0.555` gives 0.31."
        self.assertEqual(self.complaints(text), [])
        self.assertIn("[results] 1 tables from raw files, 0 others", self.results("--check").stdout)

    def test_counts_tables_that_nothing_checks_on_pages_without_marks_too(self):
        (self.root / "docs/other.md").write_text("| a | b |\n|---|---|\n| 1 | 2 |\n\n| c |\n|---|\n")
        self.assertIn("[results] 1 tables from raw files, 2 others", self.results("--check").stdout)

    def test_fails_on_a_wrong_cell_and_writes_the_right_one(self):
        right = self.page.read_text()
        self.page.write_text(right.replace("0.230", "0.231"))
        done = self.results("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: docs/page.md:8: table carry-long is not what its raw files give", done.stdout)
        self.assertEqual(self.results().returncode, 0)
        self.assertEqual(self.page.read_text(), right)

    def test_fails_on_a_wrong_number(self):
        self.assertEqual(self.complaints("0.15 is nowhere"),
                         ["error: docs/page.md:5: 0.15 is in no table of this section, nor derived for it"])

    def test_fails_on_a_wrong_number_that_ends_a_sentence(self):
        self.assertEqual(self.complaints("the least is\n0.15. The most is 0.34."),
                         ["error: docs/page.md:6: 0.15 is in no table of this section, nor derived for it"])

    def test_a_share_is_in_per_cent_only_with_its_sign(self):
        self.assertEqual(self.complaints("11.0 % of it"), [])
        self.assertEqual(self.complaints("11.0 of it"),
                         ["error: docs/page.md:5: 11.0 is in no table of this section, nor derived for it"])

    def test_fails_on_a_value_of_a_raw_file_that_no_table_shows(self):
        self.assertEqual(len(self.complaints("0.457 or 45.7 % of it")), 2)

    def test_a_number_derived_beside_a_table_is_known(self):
        with (self.root / "tools/vision_tables.py").open("a") as file:
            file.write("\n\nimport table_registry\n\n\n@table_registry.numbers_beside('carry-long')\n"
                       "def share():\n    return {'share': raw('carry-long-cola')[0]['share']}\n")
        self.assertEqual(self.complaints("45.7 % of it"), [])

    def test_numbers_in_commands_and_notes_are_no_values(self):
        self.assertEqual(len(self.complaints("0.888 and 0.777 are inside strings")), 2)

    def test_figures_of_papers_are_known(self):
        self.assertEqual(self.complaints("the paper has 0.172."), [])

    def test_names_a_raw_file_that_is_missing(self):
        (self.raw / "carry-joined-cola.json").unlink()
        done = self.results("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("carry-joined-cola.json is missing", done.stderr)

    def kept(self, document):
        file = self.folder / "document.json"
        file.write_text(json.dumps(document))
        return self.results("keep", "new", file)

    def test_keep_refuses_a_document_without_a_command(self):
        for document in {"rows": {}}, {"command": "", "rows": {}}, {"commands": [], "rows": {}}, [1]:
            done = self.kept(document)
            self.assertEqual(done.returncode, 1)
            self.assertIn("document.json: names no command", done.stderr)
        self.assertFalse((self.raw / "new.json").exists())

    def test_keep_names_a_file_that_cannot_be_read_or_is_no_json(self):
        broken = self.folder / "broken.json"
        broken.write_bytes(b'{"rows"')
        binary = self.folder / "binary.json"
        binary.write_bytes(b"\xff\xfe")
        for file, reason in (("none.json", "cannot be read (No such file or directory)"), (".", "cannot be read (Is a directory)"),
                             (broken, "is no JSON"), (binary, "is no JSON")):
            done = self.results("keep", "new", self.folder / file)
            self.assertEqual(done.returncode, 1)
            self.assertTrue(done.stderr.startswith(f"error: {self.folder / file}: {reason}"), done.stderr)
            self.assertIn("; name a file that a tool wrote", done.stderr)
        self.assertFalse((self.raw / "new.json").exists())

    def test_keep_names_a_file_that_cannot_be_written(self):
        file = self.folder / "document.json"
        file.write_text(json.dumps({"command": "hydrascope run", "rows": {}}))
        done = self.results("keep", "no/folder", file)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^error: .*raw/no/folder\.json: cannot be written")

    def test_run_refuses_options_without_a_value_and_broken_files(self):
        for option in "--data", "--without":
            done = self.results("run", "new", option)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"error: {option}: names nothing", done.stderr)
        for content, complaint in ("{", "new.json: is no JSON"), ("[1]", "names no single command"):
            (self.raw / "new.json").write_text(content)
            done = self.results("run", "new")
            self.assertEqual(done.returncode, 1)
            self.assertIn(complaint, done.stderr)

    def test_keep_takes_version_date_and_processor_from_the_document(self):
        own = {"program": "hydrascope 0.0.1", "date": "2001-02-03", "cpu": "a processor"}
        self.assertEqual(self.kept({"commands": {"a": "hydrascope run"}, **own, "rows": {"elu": 1}}).returncode, 0)
        self.assertEqual(json.loads((self.raw / "new.json").read_text()),
                         {"command": {"a": "hydrascope run"}, **own, "output": {"rows": {"elu": 1}}})

    def test_keep_adds_what_the_document_does_not_name(self):
        self.assertEqual(self.kept({"command": "hydrascope run", "date": "2001-02-03", "rows": {}}).returncode, 0)
        kept = json.loads((self.raw / "new.json").read_text())
        self.assertEqual((kept["program"], kept["date"]), ("hydrascope 9.8.7", "2001-02-03"))

    def test_run_keeps_command_version_and_commit_and_runs_again(self):
        self.program.answer(["kl"], {"kl": 0.5, "per_layer": [1], "data": f"{self.folder}/texts.tsv"})
        (self.folder / "texts.tsv").touch()
        words = ["run", "new", "--data", self.folder, "--without", "per_layer", "--", "kl", "--data", "texts.tsv"]
        done = self.results(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        kept = json.loads((self.raw / "new.json").read_text())
        self.assertEqual((kept["command"], kept["program"], kept["without"], kept["output"]),
                         ("hydrascope kl --data texts.tsv", "hydrascope 9.8.7", ["per_layer"],
                          {"kl": 0.5, "data": "texts.tsv"}))
        self.assertEqual(self.results("run", "new", "--data", self.folder).returncode, 0)
        first, second = self.program.calls()
        self.assertEqual(first, second)
        self.assertEqual(first, ["kl", "--data", f"{self.folder}/texts.tsv", "--json"])

    def test_run_names_what_it_cannot_run_again(self):
        done = self.results("run", "papers")
        self.assertEqual(done.returncode, 1)
        self.assertIn("papers.json names no single command", done.stderr)


class NumbersTest(unittest.TestCase):
    def numbers(self, text):
        return [(number, per_cent) for _, number, _, _, per_cent in measured_numbers(text)]

    def test_numbers_with_decimals_or_in_per_cent(self):
        self.assertEqual(self.numbers("24 windows, 3.5 of 7, 8 %, 9 per cent, 1,234.5 and 1,234"),
                         [("3.5", False), ("8", True), ("9", True), ("1,234.5", False)])

    def test_a_sign_counts_for_a_whole_range_or_list(self):
        self.assertEqual(self.numbers("60.1 to 62.3 %; 60.1, 61.2 and 62.3 %; 60.1 ± 0.5 %; 60.1 tokens, 62.3 %"),
                         [(one, True) for one in ["60.1", "62.3", "60.1", "61.2", "62.3", "60.1", "0.5"]]
                         + [("60.1", False), ("62.3", True)])

    def test_parts_of_names_links_and_code_are_none(self):
        self.assertEqual(self.numbers("version 0.1.0, x2.5, 2.5x, 3e-5, 1.3e-3, `a 1.5\nb 2.5`, [see](page-1.5.md)\n"
                                      "| 1.5 |\n# 1.5\n```sh\nrun 1.5\n```\nleft: 1.5"), [("1.5", False)])

    def test_lines_are_counted(self):
        self.assertEqual([line for line, *_ in measured_numbers("`code\ncode`\n\n2.5 and\n3.5.")], [3, 4])

    def test_rounding_and_signs(self):
        self.assertTrue(is_among(0.13, 2, False, [0.1349]))
        self.assertFalse(is_among(0.13, 2, False, [0.1351]))
        self.assertTrue(is_among(-0.57, 2, False, [-0.571]))
        self.assertFalse(is_among(-0.57, 2, False, [0.571]))
        self.assertTrue(is_among(0.57, 2, False, [-0.571]))
        self.assertFalse(is_among(57.1, 1, False, [0.571]))

    def test_up_to_one_is_a_share(self):
        self.assertTrue(is_among(57.1, 1, True, [0.571]))
        self.assertFalse(is_among(150.0, 1, True, [1.5]))

    def test_numbers_of_cells_and_their_signs(self):
        self.assertEqual(list(cell_numbers("| `w=64`, 256 | −0.3 ± 0.1 | 99 ± 2 % | 1,234.5 | 4.9e-6 | 4.01…4.24 |")),
                         [(256, False), (-0.3, False), (0.1, False), (99, True), (2, True), (1234.5, False), (4.9e-6, False),
                          (4.01, False), (4.24, False)])

    def test_only_numbers_are_values(self):
        self.assertEqual(list(named_values({"command": "run 1.5", "a": [2.5, True, None, {"b": 3}]})), [2.5, 3.0])


class ErrorOfMatthewsTest(unittest.TestCase):
    @staticmethod
    def phi(shares):
        both, missed, alarm, neither = shares
        return (both * neither - missed * alarm) / (
            (both + missed) * (alarm + neither) * (both + alarm) * (missed + neither)) ** 0.5

    def slope(self, shares, i, step=1e-6):
        up, down = ([share + sign * step * (i == j) for j, share in enumerate(shares)] for sign in (1, -1))
        return (self.phi(up) - self.phi(down)) / (2 * step)

    def test_is_that_of_the_slopes(self):
        for counts in (607, 112, 169, 155), (30, 70, 20, 480), (400, 20, 300, 280):
            count = sum(counts)
            both, missed, alarm, neither = shares = [one / count for one in counts]
            slopes = [self.slope(shares, i) for i in range(4)]
            mean = sum(share * slope for share, slope in zip(shares, slopes))
            variance = sum(share * slope**2 for share, slope in zip(shares, slopes)) - mean**2
            measures = {"accuracy": both + neither, "f1": 2 * both / (2 * both + missed + alarm), "matthews": self.phi(shares)}
            (found,) = error_of_matthews({name: {"values": [one]} for name, one in measures.items()}, both + missed, count)
            self.assertAlmostEqual(found, (variance / count) ** 0.5, places=8)


if __name__ == "__main__":
    unittest.main()
