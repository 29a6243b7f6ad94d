"""Compares `hydrascope run` with transformers on random checkpoints of real configurations, one line per model.

    compare_run.py PROGRAM FOLDER [--only NAME] [--keep] [--checkpoint FOLDER ...] [--write FILE] [-- OPTION ...]

FOLDER receives the checkpoints (up to 400 MB at a time, removed again without --keep). --checkpoint adds existing
Hugging Face folders (BERT or DINOv2 without a head, say the bundled models). What follows -- goes to the program.
The model is judged on the pixels that the program says it fed to it; pixels themselves are compared with Pillow's.
"""

import argparse
import json
import math
import pathlib
import shutil
import subprocess
import sys

import torch
import transformers
from PIL import Image
from transformers import AutoImageProcessor, BertConfig, BertTokenizer, DeiTConfig, Dinov2Config, ViTConfig

import common
from make_images import waves
from make_models import processor

LIMIT = 1e-4
TINY = {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768}
DEIT = processor("DeiTImageProcessor", {"height": 256, "width": 256}, 224)
DINO = processor("BitImageProcessor", {"shortest_edge": 256}, 224) | {"do_convert_rgb": True}
VIT = processor("ViTImageProcessor", {"height": 224, "width": 224}, None, [0.5] * 3, [0.5] * 3, 2)
SMALL_DINO = {"hidden_size": 384, "num_attention_heads": 6, "patch_size": 14, "image_size": 518}
TEXT, PAIR = "The Hydra attention runs naïvely over tokens, not heads!", "Is it a hedgehog?"
MODELS = {
    "deit-tiny": (DeiTConfig(**TINY, num_labels=1000), "DeiTForImageClassification", DEIT),
    "deit-tiny as vit": (ViTConfig(**TINY, num_labels=1000), "ViTForImageClassification", DEIT),
    "deit-base-distilled, 4 layers": (
        DeiTConfig(num_hidden_layers=4, num_labels=1000), "DeiTForImageClassificationWithTeacher", DEIT),
    "vit-base, 4 layers": (ViTConfig(num_hidden_layers=4, num_labels=1000), "ViTForImageClassification", VIT),
    "vit-base, 4 layers, 224x288": (
        ViTConfig(num_hidden_layers=4, num_labels=10), "ViTForImageClassification",
        VIT | {"size": {"height": 224, "width": 288}}),
    "dinov2-small": (Dinov2Config(**SMALL_DINO, num_labels=1000), "Dinov2ForImageClassification", DINO),
    "dinov2-small, no head, 308x224": (
        Dinov2Config(**SMALL_DINO), "Dinov2Model", VIT | {"size": {"height": 308, "width": 224}}),
    "bert-base, 4 layers": (BertConfig(num_hidden_layers=4), "BertForSequenceClassification", None),
    "bert-base, 4 layers, pair": (BertConfig(num_hidden_layers=4), "BertForSequenceClassification", None),
    "bert-base, 2 layers, masked LM": (BertConfig(num_hidden_layers=2), "BertForMaskedLM", None),
    "bert-base, 2 layers, no head": (BertConfig(num_hidden_layers=2), "BertModel", None),
}


def make_checkpoint(folder, name):
    """A random checkpoint; its text model uses the golden vocabulary, the rest of the embeddings lies idle."""
    config, class_name, preprocessing = MODELS[name]
    model = getattr(transformers, class_name)(config)
    common.save_checkpoint(common.randomise(model, name), folder)
    if preprocessing:
        common.write_json(folder / "preprocessor_config.json", preprocessing)
    else:
        for file in ("vocab.txt", "tokenizer_config.json"):
            shutil.copyfile(common.GOLDEN / "wordpiece" / "uncased" / file, folder / file)


def run_program(program, folder, arguments, options):
    output = folder.parent / "run.safetensors"
    command = [program, "run", "--model", folder, *arguments, "--output", output]
    command += ["--tensors", "pixels,logits,hidden,attention", "--json", "--no-adapter", *options]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()}")
    json.loads(done.stdout)
    tensors = common.read_tensors(output)
    output.unlink()
    return tensors


def reference(folder, tensors, pair):
    """What transformers computes from the program's pixels, or from its own ids of the text."""
    config = json.loads((folder / "config.json").read_text())
    model = common.load(getattr(transformers, config["architectures"][0]), folder)
    if config["model_type"] == "bert":
        tokenizer = BertTokenizer.from_pretrained(folder)
        return common.run_model(model, **tokenizer(TEXT, pair, return_tensors="pt", return_token_type_ids=True))
    extra = {} if config["model_type"] == "dinov2" else {"interpolate_pos_encoding": True}
    return common.run_model(model, pixel_values=tensors["pixels"], **extra)


def compare(program, folder, picture, pair, options):
    """(worst relative error, the tensor it is in, a remark on the pixels)."""
    vision = json.loads((folder / "config.json").read_text())["model_type"] != "bert"
    arguments = ["--image", picture] if vision else ["--text", TEXT, *(["--pair", pair] if pair else [])]
    tensors = run_program(program, folder, arguments, options)
    expected = reference(folder, tensors, pair)
    remark = ""
    if vision:
        pixels = AutoImageProcessor.from_pretrained(folder, backend="pil")(
            Image.open(picture).convert("RGB"), return_tensors="pt")["pixel_values"]
        same = pixels.shape == tensors["pixels"].shape
        remark = f"pixels off by {(pixels - tensors['pixels']).abs().max():.1e}" if same else "pixels of another shape"
    worst, where = 0.0, "-"
    for key, value in expected.items():
        if key not in tensors or tensors[key].shape != value.shape:
            found = tuple(tensors[key].shape) if key in tensors else "missing"
            raise RuntimeError(f"{key}: {found}, expected {tuple(value.shape)}")
        error = ((tensors[key] - value).abs().max() / value.abs().max()).item()
        if math.isnan(error):
            raise RuntimeError(f"{key}: not a number")
        if error > worst:
            worst, where = error, key
    return worst, where, remark


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", help="names that contain this")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--checkpoint", type=pathlib.Path, action="append", default=[])
    common.add_write(parser)
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        position = arguments.index("--")
        arguments, options = arguments[:position], arguments[position + 1 :]
    args = parser.parse_args(arguments)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(2)
    args.folder.mkdir(parents=True, exist_ok=True)
    picture = args.folder / "picture.png"
    Image.fromarray(waves(320, 261, 3, "compare")).save(picture)
    failed, rows = 0, []
    jobs = [(name, args.folder / name.replace(", ", "-").replace(" ", "-"), True) for name in MODELS]
    jobs += [(folder.name, folder.resolve(), False) for folder in args.checkpoint]
    for name, folder, ours in jobs:
        if args.only and args.only not in name:
            continue
        try:
            if ours and not (folder / "model.safetensors").exists():
                make_checkpoint(folder, name)
            worst, where, remark = compare(args.program, folder, picture, PAIR if "pair" in name else None, options)
            good = worst <= LIMIT
            rows.append({"model": name, "error": worst, "tensor": where})
            print(f"{'ok  ' if good else 'FAIL'} {name}: {worst:.1e} at {where}  {remark}", flush=True)
        except (RuntimeError, OSError, ValueError, AssertionError) as problem:
            good = False
            print(f"FAIL {name}: {problem}", flush=True)
        failed += not good
        if ours and not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    if not failed:
        common.write_found(args, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
