"""tools/experiment.py: results are kept with their command, trainings resumed, other settings and data refused."""
import pathlib
import shlex
import unittest
from unittest import mock

from support import ToolTest

import experiment


class ResultFolderTest(ToolTest):
    def setUp(self):
        super().setUp()
        patch = mock.patch.object(experiment, "PROGRAM", str(self.program.path))
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(experiment.program_and_commit.cache_clear)
        self.results = experiment.ResultFolder(self.out)

    def test_keeps_what_the_command_printed_with_the_command(self):
        self.program.answer(["evaluate"], {"top1": 0.5})
        words = ["evaluate", "--data", "/some/folder/a.tsv,/some/folder/b.tsv", "--seed", "3"]
        self.assertEqual(self.results.run("one", words), {"top1": 0.5})
        kept = self.json("one")
        self.assertEqual(kept["command"], "hydrascope evaluate --data a.tsv,b.tsv --seed 3 --json")
        self.assertEqual(kept["outcome"], {"top1": 0.5})
        self.assertEqual(kept["program"], "hydrascope 9.8.7")
        self.assertEqual(self.program.calls(), [[*words, "--json"]])

    def test_does_not_run_what_is_kept(self):
        self.program.answer(["evaluate"], {"top1": 0.5})
        self.results.run("one", ["evaluate"])
        self.program.answer(["evaluate"], {"top1": 0.75})
        again = experiment.ResultFolder(self.out)
        self.assertEqual(again.run("one", ["evaluate", "--threads", "4"]), {"top1": 0.5})
        self.assertEqual(len(self.program.calls()), 1)

    def test_refuses_what_another_command_printed(self):
        self.program.answer(["evaluate"], {"top1": 0.5})
        self.results.run("one", ["evaluate", "--limit", "10"])
        with self.assertRaisesRegex(SystemExit, "one.json was printed by another command: .*--limit 10.*--limit 20"):
            self.results.run("one", ["evaluate", "--limit", "20"])

    def test_refuses_a_result_without_a_command(self):
        (self.out / "one.json").write_text('{"top1": 0.5}')
        with self.assertRaisesRegex(SystemExit, "one.json has no command and outcome"):
            self.results.run("one", ["evaluate"])

    def test_names_what_cannot_be_read_or_made(self):
        (self.out / "data.json").write_text("{")
        with self.assertRaisesRegex(SystemExit, "data.json: is no JSON .*; delete it, or name another OUT"):
            experiment.check_data(self.out)
        with self.assertRaisesRegex(SystemExit, "data.json/more: cannot be made .*; name another OUT"):
            experiment.ResultFolder(self.out / "data.json/more")
        with self.assertRaisesRegex(SystemExit, "none: there is no such folder; name data"):
            experiment.first_classes(self.folder / "none", 2, self.out)

    def test_keeps_nothing_of_a_program_that_fails_or_prints_no_json(self):
        self.program.answer(["evaluate"], '{"top1": 0.', status=3)
        with self.assertRaisesRegex(SystemExit, "exit status 3"):
            self.results.run("one", ["evaluate"])
        self.program.answer(["evaluate"], '{"top1": 0.')
        with self.assertRaisesRegex(SystemExit, "printed no JSON"):
            self.results.run("one", ["evaluate"])
        self.assertEqual(list(self.out.iterdir()), [])

    def test_names_a_program_that_is_not_there(self):
        experiment.program_and_commit.cache_clear()
        with mock.patch.object(experiment, "PROGRAM", str(self.folder / "none")):
            with self.assertRaisesRegex(SystemExit, "none: cannot be run .*HYDRASCOPE_PROGRAM"):
                self.results.run("one", ["evaluate"])

    def test_resumes_a_training_from_its_checkpoint_alone(self):
        self.program.answer(["distill"], {"kl": 0.1})
        fresh, outcome = self.results.trained("fresh", ["distill"])
        self.assertEqual((pathlib.Path(fresh).name, outcome), ("fresh.safetensors", {"kl": 0.1}))
        self.assertTrue(pathlib.Path(fresh).exists())
        (self.out / "stopped.safetensors.checkpoint").touch()
        self.results.trained("stopped", ["distill"])
        fresh_call, stopped_call = self.program.calls()
        self.assertNotIn("--resume", fresh_call)
        self.assertIn("--resume", stopped_call)
        self.assertEqual(self.json("stopped-training")["command"], "hydrascope distill -o stopped.safetensors --json")

    def test_says_what_ran_the_program(self):
        self.program.answer(["finetune"], {})
        started = experiment.ResultFolder(self.out, ["env", "A=1"], self.folder)
        started.run("one", ["finetune"])
        self.assertEqual(self.json("one")["command"], "env A=1 hydrascope finetune --json")

    def test_rows_of_earlier_runs_stay(self):
        for kernel in "elu", "relu":
            self.program.answer([kernel], {})
            results = experiment.ResultFolder(self.out)
            results.run(kernel, ["evaluate", "--kernel", kernel])
            results.write("conversion", {kernel: {"seeds": [len(kernel)]}})
        document = self.json("conversion")
        self.assertEqual(document["rows"], {"elu": {"seeds": [3]}, "relu": {"seeds": [4]}})
        self.assertEqual(document["commands"], {kernel: f"hydrascope evaluate --kernel {kernel} --json"
                                                for kernel in ("elu", "relu")})
        self.assertEqual(document["program"], "hydrascope 9.8.7")
        self.assertEqual(document["cpu"], experiment.cpu())

    def test_refuses_other_settings_by_name(self):
        experiment.check_settings(self.out, {"per_class": 30, "tail": "a"})
        experiment.check_settings(self.out, {"per_class": 30, "tail": "a"})
        with self.assertRaises(SystemExit) as raised:
            experiment.check_settings(self.out, {"per_class": 10, "tail": "a"})
        self.assertIn(f"{self.out} was made with --per-class 30 in place of 10:", str(raised.exception))
        self.assertNotIn("tail", str(raised.exception))
        self.assertEqual(self.json("settings"), {"per_class": 30, "tail": "a"})

    def test_refuses_other_data_by_content_and_by_what_a_folder_holds(self):
        for name in "texts", "train/a", "train/b":
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text("one")
        paths = [self.folder / name for name in ("texts", "train", "none")]
        experiment.check_data(self.out, *paths[:1])
        experiment.check_data(self.out, *paths)
        experiment.check_data(self.out, *paths)
        self.assertEqual(sorted(self.json("data")), ["texts", "train"])
        (self.folder / "train/b").rename(self.folder / "train/c")
        with self.assertRaisesRegex(SystemExit, "out was made from other data than [^,]*/train: give the same"):
            experiment.check_data(self.out, *paths)
        (self.folder / "texts").write_text("two")
        with self.assertRaisesRegex(SystemExit, "from other data than [^,]*/texts, [^,]*/train:"):
            experiment.check_data(self.out, *paths)

    def test_classes_of_other_data_are_refused(self):
        for folder, names in ("one", "abc"), ("two", "bcd"):
            for name in names:
                (self.folder / folder / "train" / name).mkdir(parents=True)
        for _ in range(2):
            some = experiment.first_classes(self.folder / "one/train", 2, self.out)
            self.assertEqual(sorted(link.name for link in some.iterdir()), ["a", "b"])
        with self.assertRaisesRegex(SystemExit, "a leads to .*one/train/a, which is none of the first 2 classes of .*two"):
            experiment.first_classes(self.folder / "two/train", 2, self.out)
        self.assertEqual(sorted(link.name for link in some.iterdir()), ["a", "b"])


class TextTest(unittest.TestCase):
    def test_command_has_no_folders_and_no_resume(self):
        words = ["hydrascope", "run", "--resume", "--text", "two words", "-o", "/a/b.json"]
        self.assertEqual(shlex.split(experiment.command_text(words)),
                         ["hydrascope", "run", "--text", "two words", "-o", "b.json"])

    def test_file_names_of_kernels(self):
        self.assertEqual(experiment.file_name("hedgehog-window:w=64"), "hedgehog-window-w64")
        self.assertEqual(experiment.file_name("back:2=hydra-cosine"), "back-2-hydra-cosine")
        self.assertEqual(experiment.file_name("linear-cosine:heads=3,norm=row"), "linear-cosine-heads3-norm-row")
        self.assertEqual(experiment.file_name("softmax, 252 px"), "softmax-252-px")

    def test_kernels_with_options_of_their_own(self):
        self.assertEqual(experiment.listed_kernels("elu,performer:features=64,seed=1,relu"),
                         ["elu", "performer:features=64,seed=1", "relu"])

    def test_mean_and_deviation(self):
        self.assertEqual(experiment.spread_text(experiment.spread([0.5, 0.7])), "60.0 ± 14.1")
        self.assertEqual(experiment.spread_text(experiment.spread([0.5]), 3, 1), "0.500")
        self.assertEqual(experiment.spread_text(experiment.spread([0.5, None])), "–")


if __name__ == "__main__":
    unittest.main()
