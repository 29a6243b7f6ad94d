"""tools/train-models: what is finished is kept, what was interrupted goes on, other data are refused."""
import os
import subprocess
import unittest

from support import ROOT, ToolTest


class TrainModelsTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.pictures, self.texts = self.folder / "pictures", self.folder / "texts"
        for file in (self.pictures / "train/a/1.jpg", self.pictures / "val/a/2.jpg", self.pictures / "classes.tsv",
                     self.texts / "cola_in_domain_train.tsv", self.texts / "wikitext2_valid.txt"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(file.name)
        for command in "distill", "finetune":
            self.program.answer([command], {})

    def train(self, step):
        words = [str(ROOT / "tools/train-models"), step, str(self.pictures), str(self.texts), str(self.out)]
        return subprocess.run(words, text=True, capture_output=True,
                              env=os.environ | {"HYDRASCOPE_PROGRAM": str(self.program.path), "HYDRASCOPE_PROCESSES": "1"})

    def trained(self, step):
        """The numbers of commands that a step ran and of those among them that were resumed."""
        before = len(self.program.calls())
        done = self.train(step)
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = self.program.calls()[before:]
        return len(calls), sum("--resume" in call for call in calls)

    def refused(self, step, *names):
        before = len(self.program.calls())
        done = self.train(step)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("was made from other data than", done.stderr)
        for name in names:
            self.assertIn(f"/{name}", done.stderr)
        self.assertEqual(len(self.program.calls()), before)

    def test_keeps_what_is_finished_and_resumes_the_rest(self):
        self.assertEqual(self.trained("decoder"), (3, 0))
        self.assertEqual(self.trained("decoder"), (0, 0))
        (self.out / "smollm2-hedgehog-window.safetensors").rename(
            self.out / "smollm2-hedgehog-window.safetensors.checkpoint")
        self.assertEqual(self.trained("decoder"), (1, 1))

    def test_refuses_other_data(self):
        self.assertEqual(self.trained("tail"), (2, 0))
        self.assertEqual(sorted(self.json("data")), ["classes.tsv", "train", "val"])
        self.assertEqual(self.trained("decoder"), (3, 0))
        (self.pictures / "train/a/3.jpg").write_text("more")
        self.refused("hydra", "train")
        self.refused("all", "train")
        self.assertEqual(self.trained("decoder"), (0, 0))
        (self.texts / "wikitext2_valid.txt").write_text("other")
        self.refused("decoder", "wikitext2_valid.txt")


if __name__ == "__main__":
    unittest.main()
