"""tools/decoder-experiments, tools/vision-experiments: which commands they run, what they make of the answers."""
import json
import os
import pathlib
import unittest

from support import ToolTest, load

decoders = load("decoder-experiments")


def words_after(call, option):
    return [call[i + 1] for i, word in enumerate(call) if word == option]


class DecoderTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.program.answer(["distill"], {"kl_before": 2.5, "kl": 0.25})
        self.program.answer(["finetune"], {})
        self.program.answer(["evaluate"], {"perplexity": 20.0, "nll": 3.0, "standard_error": 0.25,
                                           "losses": [2.0, 4.0]})
        self.program.answer(["evaluate", "hedgehog"], {"perplexity": 40.0, "nll": 3.7, "standard_error": 0.25,
                                                       "losses": [2.5, 5.5]})

    def run_tool(self, *words):
        done = self.tool("decoder-experiments", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_each_phase_of_distillation_starts_from_the_one_before(self):
        self.run_tool("conversion", self.folder, self.out, "--kernels", "hedgehog")
        first, second, third, last = [call for call in self.program.calls() if call[0] == "distill"]
        self.assertEqual([words_after(first, option) for option in ("--epochs", "--seed", "--start")],
                         [["2"], ["0"], []])
        self.assertEqual([words_after(second, option) for option in ("--epochs", "--seed")], [["3"], ["1"]])
        self.assertEqual(words_after(second, "--start"), words_after(first, "-o"))
        self.assertEqual(words_after(third, "--start"), words_after(second, "-o"))
        self.assertEqual([words_after(call, "--learning-rate") for call in (third, last)], [[], ["3e-3"]])
        self.assertEqual([pathlib.Path(words_after(call, "-o")[0]).name for call in (first, second, third)],
                         ["hedgehog.safetensors", "hedgehog-more.safetensors", "hedgehog-more-more.safetensors"])
        rows = self.json("conversion")["rows"]
        self.assertEqual(list(rows), ["hedgehog", "hedgehog, 2 + 3 epochs", "hedgehog, 2 + 3 + 4 epochs",
                                      "hedgehog, 2 + 3 + 4 + 1 epochs"])
        self.assertEqual(rows["hedgehog, 2 + 3 epochs"]["distillation"], {"kl_before": 2.5, "kl": 0.25})
        # The first and the last phase's models are tuned through their own maps.
        tuned = [call for call in self.program.calls() if call[0] == "finetune"]
        self.assertEqual([words_after(call, "--adapter") for call in tuned],
                         [words_after(first, "-o"), words_after(last, "-o")])

    def test_a_longer_lora_is_compared_with_softmax_trained_alike(self):
        self.program.answer(["finetune"], {"validation_loss": 3.5})
        self.program.answer(["evaluate", "hedgehog", str(self.out.resolve() / "hedgehog-lora-e2-s1.safetensors")], {
            "perplexity": 30.0, "losses": [2.0, 5.0]})
        self.run_tool("lora", self.folder, self.out, "--kernels", "softmax,hedgehog", "--epochs", "1,2", "--seeds", "0,1")
        rows = self.json("lora")["rows"]
        self.assertEqual(list(rows), [f"{kernel}, {epochs} epoch{'s' * (epochs > 1)}, seed {seed}" for kernel in ("softmax", "hedgehog")
                                      for epochs in (1, 2) for seed in (0, 1)])
        self.assertEqual(rows["hedgehog, 1 epoch, seed 0"]["times softmax"], {"256": 2.0, "1024": 2.0})
        self.assertEqual(rows["hedgehog, 2 epochs, seed 1"]["times softmax"], {"256": 1.5, "1024": 1.5})
        self.assertAlmostEqual(rows["hedgehog, 2 epochs, seed 1"]["difference to softmax"]["256"]["mean"], 0.5)
        self.assertNotIn("times softmax", rows["softmax, 1 epoch, seed 0"])
        tuned = [call for call in self.program.calls() if call[0] == "finetune"]
        self.assertEqual([words_after(call, "--train-layers") for call in tuned], 4 * [["0-29"]] + 4 * [[]])
        self.assertEqual([[pathlib.Path(one).name for one in words_after(call, "--adapter")] for call in tuned],
                         4 * [[]] + 4 * [["smollm2-hedgehog.safetensors"]])

    def test_every_command_has_its_seed(self):
        self.run_tool("conversion", self.folder, self.out, "--kernels", "softmax,elu")
        for name, command in self.json("conversion")["commands"].items():
            self.assertIn(" --seed 0", command, name)

    def test_differences_are_paired_by_window(self):
        printed = self.run_tool("conversion", self.folder, self.out, "--kernels", "hedgehog,softmax")
        rows = self.json("conversion")["rows"]
        # 0.5 and 1.5: the mean is 1, the deviation 0.7071, the standard error of two 0.5.
        for window in "256", "1024":
            difference = rows["hedgehog"]["difference to softmax"][window]
            self.assertAlmostEqual(difference["mean"], 1.0)
            self.assertAlmostEqual(difference["standard_error"], 0.5)
        self.assertNotIn("difference to softmax", rows["softmax"])
        self.assertEqual(rows["hedgehog"]["loss"]["tuned"]["256"],
                         {"mean": 3.7, "standard_error": 0.25, "losses": [2.5, 5.5]})
        self.assertEqual(rows["hedgehog"]["tuned"], {"256": 40.0, "1024": 40.0})
        self.assertIn("| `softmax` | before 20 / 20 | tuned 20 / 20 |", printed)

    def test_no_difference_without_the_losses_of_windows(self):
        with_losses = {"losses": [1.0, 2.0]}
        rows = {"softmax": {"loss": {"tuned": {"256": with_losses, "1024": {"mean": 3.0}}}},
                "elu": {"loss": {"tuned": {"256": {"mean": 3.0}, "1024": with_losses}}, "difference to softmax": {}}}
        self.assertNotIn("difference to softmax", decoders.add_differences(rows)["elu"])

    def test_image_reports_the_last_state_and_listops_the_test_set(self):
        for number in range(12):
            (self.folder / f"train/n{number:02}").mkdir(parents=True)
        outcome = {"accuracy": 0.5, "last_accuracy": 0.25, "constant_answer": 0.125, "test_accuracy": None,
                   "test_constant_answer": None}
        self.program.answer(["train"], outcome)
        printed = self.run_tool("image", self.folder, self.out, "--kernels", "elu")
        self.assertEqual(self.means("image"), {"last_accuracy": 0.25, "constant_answer": 0.125})
        self.assertNotIn("0.5", printed)
        self.assertEqual(sorted(folder.name for folder in (self.out / "train-10-classes").iterdir()),
                         [f"n{number:02}" for number in range(10)])
        self.program.answer(["train"], outcome | {"test_accuracy": 0.375, "test_constant_answer": 0.0625})
        self.run_tool("listops", "-", self.out, "--kernels", "elu")
        self.assertEqual(self.means("listops"), {"test_accuracy": 0.375, "test_constant_answer": 0.0625, "accuracy": 0.5,
                                                 "constant_answer": 0.125})

    def means(self, task):
        return {name: numbers["mean"] for name, numbers in self.json(task)["rows"]["elu"].items()}

    def test_seeds_have_a_training_each(self):
        for seed, accuracy in (("0", 0.25), ("1", 0.5)):
            self.program.answer(["train", "--seed", seed], {"test_accuracy": accuracy})
        self.run_tool("listops", "-", self.out, "--kernels", "elu", "--seeds", "0,1")
        self.assertEqual(self.json("listops")["rows"]["elu"]["test_accuracy"]["values"], [0.25, 0.5])

    def test_an_older_program_gives_no_last_accuracy_in_place_of_the_best(self):
        for number in range(10):
            (self.folder / f"train/n{number}").mkdir(parents=True)
        self.program.answer(["train"], {"accuracy": 0.5})
        self.assertIn("last_accuracy –", self.run_tool("image", self.folder, self.out, "--kernels", "elu"))


class VisionTest(ToolTest):
    def run_tool(self, experiment, *words, **environment):
        return self.tool("vision-experiments", experiment, self.folder, self.out, "--seeds", "1", *words, **environment)

    def setUp(self):
        super().setUp()
        self.program.answer(["finetune"], {"accuracy_before": 0.5, "last_accuracy": 0.75})

    def test_experiments_with_equal_schedules_share_a_folder(self):
        for experiment in "places", "maps":
            done = self.run_tool(experiment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("| `softmax` | 50.00 % | 75.00 % |", done.stdout)
        rates = {experiment: json.loads((self.out / f"{experiment}-softmax-seed1-training.json").read_text())["command"]
                 for experiment in ("places", "maps")}
        self.assertIn("--learning-rate 2e-4", rates["places"])
        self.assertIn("--learning-rate 1e-4", rates["maps"])
        self.assertTrue(rates["maps"].startswith("env HYDRASCOPE_PROCESSES=1 together hydrascope finetune "))
        self.assertEqual(self.json("maps")["rows"]["softmax"], {"after": [0.75], "before": 0.5, "seeds": [1]})

    def test_rows_have_mean_and_deviation_over_the_seeds(self):
        self.program.answer(["finetune", "2"], {"accuracy_before": 0.5, "last_accuracy": 0.25})
        done = self.tool("vision-experiments", "maps", self.folder, self.out, "--seeds", "1,2")
        self.assertIn("| `t2r-hh` | 50.00 % | 50.00 ± 35.36 % |", done.stdout)
        self.assertEqual(self.json("maps")["rows"]["t2r-hh"]["after"], [0.75, 0.25])

    def test_only_the_named_rows_are_run_and_earlier_ones_stay(self):
        self.run_tool("heads", "--rows", "softmax:heads=1,softmax:heads=384")
        self.assertEqual(list(self.json("heads")["rows"]), ["softmax:heads=1", "softmax:heads=12", "softmax:heads=384"])
        self.run_tool("heads", "--rows", "heads=96,norm=row")
        self.assertEqual(len(self.json("heads")["rows"]), 3 + 2 + 7)
        done = self.run_tool("heads", "--rows", "head=1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: --rows head=1: no row of heads has", done.stderr)

    def test_a_program_is_named_from_where_the_tool_is_started(self):
        done = self.run_tool("maps", "--rows", "elu", HYDRASCOPE_PROGRAM=os.path.relpath(self.program.path))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_models_from_random_weights_see_the_first_classes_by_name(self):
        for part in "train", "val":
            for name in "c", "a", "b":
                (self.folder / part / name).mkdir(parents=True)
        self.program.answer(["train"], {"constant_answer": 0.25, "last_accuracy": 0.5, "accuracy": 0.75})
        done = self.tool("vision-experiments", "scratch-places", self.folder, self.out, "--seeds", "1", "--classes", "2",
                         "--epochs", "3", HYDRASCOPE_PROCESSES="2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| `interleave:4=hydra-cosine` | 25.00 % | 50.00 % |", done.stdout)
        rows = self.json("scratch-places")["rows"]
        some = [f"{place}:{count}=hydra-cosine" for count in (2, 4) for place in ("front", "back", "interleave")]
        self.assertEqual(list(rows), ["softmax", *some, "back:6=hydra-cosine", "back:6=aft-simple"])
        for part in "train", "val":
            self.assertEqual(sorted(link.name for link in (self.out / f"{part}-2-classes").iterdir()), ["a", "b"])
        self.assertIn("--replace back:2=hydra-cosine --data train-2-classes --validation val-2-classes",
                      self.json("scratch-places")["commands"]["scratch-places-back-2-hydra-cosine-seed1-training"])
        self.run_tool("scratch-heads", "--classes", "2", "--rows", "heads=64")
        self.assertEqual(list(self.json("scratch-heads")["rows"]),
                         ["linear-cosine:heads=64", "linear-cosine:heads=64,norm=row"])
        self.assertIn("printed by another command", self.run_tool("scratch-places", "--epochs", "4").stderr)

    def test_refuses_another_number_of_pictures_or_another_tail(self):
        self.assertEqual(self.run_tool("maps").returncode, 0)
        calls = len(self.program.calls())
        for words, complaint in [(("--per-class", "10"), "--per-class 30 in place of 10"),
                                 (("--tail", "other"), "--tail vit-small-tiny-imagenet in place of other")]:
            done = self.run_tool("kernels", *words)
            self.assertEqual(done.returncode, 1)
            self.assertIn(complaint, done.stderr)
        self.assertEqual(len(self.program.calls()), calls)


if __name__ == "__main__":
    unittest.main()
