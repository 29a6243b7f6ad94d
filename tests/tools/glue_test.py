"""tools/glue: tables of texts, constant answers, the share that a kernel recovers, and rows of several runs."""
import json
import pathlib
import tempfile
import unittest

from support import ToolTest, load

from glue_data import Table, read_table

glue = load("glue")


class ReadTableTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def read(self, content, table, limit=0):
        (self.folder / "dev.tsv").write_bytes(content)
        return read_table(self.folder, table, limit)

    named = Table(["dev.tsv"], "label", "sentence")
    numbered = Table(["dev.tsv"], 2, 1)

    def test_columns_by_name_and_by_number(self):
        self.assertEqual(self.read(b"id\tsentence\tlabel\n7\tA text\t1\n", self.named), ([["1", "A text"]], 0))
        self.assertEqual(self.read(b"A text\t1\n", self.numbered), ([["1", "A text"]], 0))
        pairs = Table(["dev.tsv"], "label", "a", "b")
        self.assertEqual(self.read(b"a\tb\tlabel\nx\ty\t0\n", pairs), ([["0", "x", "y"]], 0))

    def test_windows_line_ends_and_a_byte_order_mark(self):
        rows = self.read(b"\xef\xbb\xbfsentence\tlabel\r\nOne\t1\r\nTwo\t0\r\n", self.named)
        self.assertEqual(rows, ([["1", "One"], ["0", "Two"]], 0))

    def test_only_a_line_feed_ends_a_line(self):
        for other in "\u2028", "\x85", "\x0b", "\r":
            text = f"One{other}still one"
            self.assertEqual(self.read(f"{text}\t1\nTwo\t0\n".encode(), self.numbered),
                             ([["1", text], ["0", "Two"]], 0))

    def test_lines_that_lack_something_are_counted(self):
        rows, broken = self.read(b"One\t1\nwithout a label\n \t1\nTwo\t0\n\n", self.numbered)
        self.assertEqual((rows, broken), ([["1", "One"], ["0", "Two"]], 2))

    def test_names_missing_columns(self):
        with self.assertRaisesRegex(SystemExit, "dev.tsv: its header names no column label, sentence"):
            self.read(b"text\tclass\nOne\t1\n", self.named)

    def test_names_a_file_that_is_no_utf8(self):
        with self.assertRaisesRegex(SystemExit, "dev.tsv: is not UTF-8"):
            self.read(b"caf\xe9\t1\n", self.numbered)

    def test_limit(self):
        self.assertEqual(self.read(b"One\t1\nTwo\t0\n", self.numbered, 1), ([["1", "One"]], 0))


class ConstantTest(unittest.TestCase):
    def test_answers_stand_apart(self):
        # The commonest class of the training data is the first, so that its F1, of the second class, is 0.
        answers = glue.constant(["0", "0", "1"], ["1", "1", "1", "0"])
        self.assertEqual(answers[glue.COMMONEST], {"accuracy": 0.25, "matthews": 0.0, "f1": 0.0})
        self.assertEqual(answers[glue.SECOND], {"accuracy": 0.75, "matthews": 0.0, "f1": 6 / 7})

    def test_answers_agree_where_the_second_class_is_the_commonest(self):
        answers = glue.constant(["1", "1", "0"], ["1", "0"])
        self.assertEqual(answers[glue.COMMONEST], answers[glue.SECOND])
        self.assertAlmostEqual(answers[glue.SECOND]["f1"], 2 / 3)

    def test_several_classes_and_numbers(self):
        answers = glue.constant(["a", "b", "b", "c"], ["a", "b", "c", "c"])
        self.assertEqual(answers, {glue.COMMONEST: {"accuracy": 0.25, "matthews": 0.0}})
        self.assertEqual(glue.constant(["0.5", "2.5"], ["1.0"], numbers=True),
                         {glue.COMMONEST: {"pearson": 0.0, "spearman": 0.0}})


class RecoveredTest(unittest.TestCase):
    constants = {"cola": {glue.COMMONEST: {"matthews": 0.0}}, "sst2": {glue.COMMONEST: {"accuracy": 0.5}}}

    def recovered(self, kernel, softmax):
        def measures(values):
            return {"cola": {3: {"matthews": values[0]}}, "sst2": {3: {"accuracy": values[1]}}}
        return glue.recovered(measures(kernel), self.constants, measures(softmax), ["cola", "sst2"], 3)

    def test_is_the_mean_share_above_the_constant_answer(self):
        self.assertAlmostEqual(self.recovered([0.2, 0.6], [0.4, 0.9]), (0.5 + 0.25) / 2)
        self.assertAlmostEqual(self.recovered([0.4, 0.9], [0.4, 0.9]), 1)
        self.assertAlmostEqual(self.recovered([0.0, 0.5], [0.4, 0.9]), 0)

    def test_is_undefined_where_softmax_is_no_better_than_the_constant_answer(self):
        self.assertIsNone(self.recovered([0.2, 0.6], [0.4, 0.5]))


class ConversionTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.glue, model = self.folder / "glue", self.folder / "model"
        for folder in self.glue / "CoLA", model:
            folder.mkdir(parents=True)
        (model / "config.json").write_text('{"num_hidden_layers": 2}')
        for part in "train", "dev":
            (self.glue / f"CoLA/{part}.tsv").write_text("x\t0\t*\tBad\u2028 text\nx\t1\t\tA text\nx\t1\t\tOther\n")
        self.model = model
        self.program.answer(["finetune"], {})
        self.program.answer(["evaluate"], {"top1": 0.75, "f1": 0.5, "matthews": 0.4})
        self.program.answer(["evaluate", "elu"], {"top1": 0.75, "f1": 0.5, "matthews": 0.1})

    def run_tool(self, *words, experiment="conversion"):
        done = self.tool("glue", experiment, self.glue, self.out, "--model", self.model, "--jobs", "1", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_rows_keep_their_own_seeds(self):
        self.run_tool("--kernels", "elu", "--seeds", "0,1")
        printed = self.run_tool("--kernels", "relu", "--seeds", "1")
        rows = self.json("conversion")["rows"]
        self.assertEqual({name: row.get("seeds") for name, row in rows.items()}, {
            glue.COMMONEST: None, glue.SECOND: None, "softmax before the further epochs": [1], "softmax": [1],
            "elu": [0, 1], "relu": [1]})
        self.assertEqual({name: row["tasks"] for name, row in rows.items()}, {name: ["cola"] for name in rows})
        self.assertEqual(rows["elu"]["recovered"]["values"], [0.25, 0.25])
        self.assertEqual(rows[glue.SECOND]["measures"]["cola"]["accuracy"]["values"], [2 / 3])
        self.assertIn("| relu | 40.0 | 100.0 % | 39.5 |", printed)
        self.assertIn(f"| {glue.COMMONEST} | 66.7 | 80.0 | 0.0 |", printed)

    def test_numbers_of_the_paper_are_those_of_the_raw_file(self):
        paper = json.loads(glue.PAPERS.read_text())
        table = next(one for work in paper.values() for name, one in work.items() if name.startswith("table 8, CoLA"))
        self.assertIn(f"| elu | 10.0 | 25.0 % | {table['elu']} |", self.run_tool("--kernels", "elu", "--seeds", "0"))

    def test_divergences_keep_their_errors_by_source_of_the_maps_and_by_length(self):
        self.program.answer(["distill"], {})
        self.program.answer(["kl"], [{"length": None, "kl": 0.5, "kl_standard_error": 0.25}])
        self.program.answer(["kl", "8,16"], [{"length": 8, "kl": 0.5, "kl_standard_error": 0.25},
                                             {"length": 16, "kl": 0.75, "kl_standard_error": None}])
        words = ["--kernels", "hedgehog,elu", "--seeds", "0,1"]
        printed = self.run_tool(*words, "--maps", "cola", experiment="kl")
        self.assertIn("| hedgehog, maps of CoLA | 0.500 ± 0.000 |", printed)
        rows = self.json("kl")["rows"]
        self.assertEqual(sorted(rows), ["elu", "hedgehog, maps of CoLA", "hedgehog, own maps"])
        self.assertEqual(rows["elu"]["kl"]["cola"],
                         {"mean": 0.5, "deviation": 0, "values": [0.5, 0.5], "standard_errors": [0.25, 0.25]})
        self.run_tool(*words, "--lengths", "8,16", experiment="lengths")
        self.assertEqual(self.json("lengths")["rows"]["elu"]["kl"]["cola 16"]["standard_errors"], [None, None])

    def test_refuses_another_validation_share(self):
        self.run_tool("--kernels", "elu", "--seeds", "0")
        done = self.tool("glue", "conversion", self.glue, self.out, "--model", self.model, "--validation-share", "0.2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--validation-share 0.1 in place of 0.2", done.stderr)

    def test_names_a_model_that_is_not_there_or_takes_no_texts(self):
        for model, complaint in ((self.folder, "config.json: cannot be read (No such file or directory); name another --model"),
                                 (self.model, f"{self.model}: is no text model; name another --model")):
            (self.model / "config.json").write_text("{}")
            done = self.tool("glue", "conversion", self.glue, self.out / model.name, "--model", model)
            self.assertEqual(done.returncode, 1)
            self.assertIn(complaint, done.stderr)

    def test_refuses_other_data_in_the_same_folder(self):
        self.run_tool("--kernels", "elu", "--seeds", "0")
        self.run_tool("--kernels", "elu", "--seeds", "0")
        calls = len(self.program.calls())
        (self.glue / "CoLA/dev.tsv").write_text("x\t1\t*\tAnother text\n")
        done = self.tool("glue", "conversion", self.glue, self.out, "--model", self.model, "--seeds", "0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("was made from another CoLA/dev.tsv than that of", done.stderr)
        self.assertEqual(len(self.program.calls()), calls)


if __name__ == "__main__":
    unittest.main()
