"""What trains: its checkpoints, adapters, curves, lists and cached features."""
import json
import random
import shutil

from interruption.cases import Broken, Case, MODELS, PROGRAM, write


class Training(Case):
    """A training that goes on from its checkpoint, beside an older adapter or above a cache."""
    continues = True
    more = ()

    def prepare(self):
        generator = random.Random(7)
        write(self.folder / "lines.txt", "".join(
            " ".join(generator.choice("abcdefghijklmnop") for _ in range(generator.randint(5, 16))) + "\n" for _ in range(60)))
        for colour, bright in (("blue", 2), ("red", 0)):
            for i in range(12):
                write(self.folder / f"pictures/{colour}/{i}.ppm", b"P6\n30 30\n255\n" + bytes(
                    generator.randrange(100) + (150 if value % 3 == bright else 0) for value in range(2700)))
        self.old = {self.output: b"an older adapter"} if self.output.endswith(".safetensors") else {}

    output = "it.safetensors"

    def environment(self):
        return {"XDG_CACHE_HOME": str(self.out / "cache")}

    def resume(self):
        return ["--resume"] if (self.out / f"{self.output}.checkpoint").exists() else []

    def common(self):
        return ["--threads", "1", "--seed", "3", "-o", str(self.out / self.output), *self.resume()]

    def results(self):
        return {name: content for name, content in super().results().items()
                if not name.startswith("cache/") and not name.endswith(".checkpoint") or "-part" in name}

    def check_whole(self):
        super().check_whole()
        if self.resume():
            raise Broken("the checkpoint is left over")


class Distil(Training):
    def command(self):
        return [PROGRAM, "distill", "--kernel", "hedgehog", "--no-adapter", "--model", str(MODELS / "bert"), "--data",
                str(self.folder / "lines.txt"), "--epochs", "8", "--batch", "4", "--patience", "0", "--checkpoint-seconds",
                "0.02", "--validate-every", "5", *self.common()]


class Finetune(Training):
    epochs = "30"

    def command(self):
        return [PROGRAM, "finetune", "--no-adapter", "--model", str(MODELS / "dinov2"), "--data",
                str(self.folder / "pictures"), "--train-layers", "1,head", "--image-size", "28", "--epochs", self.epochs,
                "--batch", "4", "--patience", "0", "--mixup", "0.2", "--checkpoint-seconds", "0.02", *self.common()]


class Features(Finetune):
    """Mostly the cache of features, which an interrupted run leaves in part."""
    epochs = "1"

    def prepare(self):
        super().prepare()
        for colour in ("blue", "red"):
            for i in range(12, 80):
                shutil.copy(self.folder / f"pictures/{colour}/{i % 12}.ppm", self.folder / f"pictures/{colour}/{i}.ppm")


class FromScratch(Training):
    """A new model, a folder that appears when it is whole."""
    output = "model"

    def command(self):
        return [PROGRAM, "train", "--preset", "lra-listops", "--sequences", "60", "20", "20", "--layers", "1", "--heads", "2",
                "--width", "16", "--mlp", "16", "--chunk", "32", "--epochs", "3", "--batch", "8", "--checkpoint-seconds",
                "0.02", *self.common()]

    @property
    def done(self):
        """Killed when all was written: an output that exists is refused."""
        return (self.out / self.output).exists()

    def check(self):
        super().check()
        names = {name for name in self.results() if name.startswith("model/")}
        if names and names != {name for name in self.whole if name.startswith("model/")}:
            raise Broken("the folder of the model is not whole")

    def check_whole(self):
        """A kill between the last two changes leaves the checkpoint beside the whole model, which is not made again."""
        Case.check_whole(self)


class Recall(Training):
    """A list of results that grows kernel by kernel."""
    output = "recall.json"

    def command(self):
        return [PROGRAM, "recall", "--kernel", "softmax,elu", "--preset", "small", "--sequences", "40", "20", "20",
                "--epochs", "3", "--batch", "10", "--checkpoint-seconds", "0.02", *self.common()]

    def resume(self):
        return ["--resume"] if (self.out / self.output).exists() or list(self.out.glob("*.checkpoint")) else []

    def results(self):
        """Without the times, which differ from run to run."""
        found = super().results()
        if self.output in found:
            rows = json.loads(found[self.output])
            found[self.output] = json.dumps([{key: value for key, value in row.items() if "second" not in key}
                                             for row in rows]).encode()
        return found

    def check(self):
        for name, content in self.results().items():
            if name == self.output and json.loads(content) not in [json.loads(self.whole[name])[:n] for n in (0, 1, 2)]:
                raise Broken(f"{name} is no part of the whole list")

    def check_whole(self):
        if self.results() != self.whole:
            raise Broken("another list than that of an uninterrupted run")
        if left := list(self.out.glob("*.checkpoint")):
            raise Broken(f"{left[0].name} is left over")


TRAINING_CASES = {"features": Features, "distil": Distil, "finetune": Finetune, "from-scratch": FromScratch, "recall": Recall}
