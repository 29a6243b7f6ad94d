"""Compares `hydrascope run` under the bundled adapters with transformers and tools/load_adapter.py, one line each.

    compare_adapters.py PROGRAM SCRATCH
"""

import argparse
import json
import pathlib
import subprocess
import sys

import torch
from safetensors import safe_open
from transformers import BertModel, BertTokenizer, Dinov2ForImageClassification, logging

import common

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from load_adapter import load_adapter  # noqa: E402

LIMIT = 1e-4
TEXT = "The Hydra attention runs naïvely over tokens, not heads!"
BUNDLED = {
    "vit-small": [["vit-small-tiny-imagenet"], ["vit-small-tiny-imagenet", "vit-small-tiny-imagenet-hydra-cosine-back2-long"]],
    "minilm": [["minilm-hedgehog"]],
}


def run_program(program, model, adapters, scratch):
    """The tensors of a run under exactly these adapters, with the last one's kernels."""
    with safe_open(adapters[-1], "pt") as file:
        layers = json.loads(file.metadata()["layers"])
    command = [program, "run", "--model", model, "--json", "--output", scratch / "run.safetensors"]
    command += ["--tensors", "pixels,logits,hidden"] if model.name != "minilm" else ["--tensors", "hidden"]
    command += [part for adapter in adapters for part in ("--adapter", adapter)]
    command += ["--layers", ";".join(f"{entry['layer']}={entry['kernel']}" for entry in layers)]
    command += ["--text", TEXT] if model.name == "minilm" else ["--image", ROOT / ".deps/examples/chelsea.png"]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    return common.read_tensors(scratch / "run.safetensors")


def reference(model_folder, adapters, tensors):
    text = model_folder.name == "minilm"
    model = (BertModel if text else Dinov2ForImageClassification).from_pretrained(model_folder).eval()
    for adapter in adapters:
        load_adapter(model, adapter)
    inputs = {"pixel_values": tensors["pixels"]} if not text else \
        BertTokenizer.from_pretrained(model_folder)(TEXT, return_tensors="pt")
    with torch.no_grad():
        out = model(**inputs, output_hidden_states=True)
    expected = {f"hidden.{index}": value for index, value in enumerate(out.hidden_states)}
    return expected if text else expected | {"logits": out.logits}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    args = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    args.scratch.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, chains in BUNDLED.items():
        for chain in chains:
            adapters = [ROOT / "assets" / "adapters" / f"{adapter}.safetensors" for adapter in chain]
            tensors = run_program(args.program, ROOT / ".deps/models" / name, adapters, args.scratch)
            expected = reference(ROOT / ".deps/models" / name, adapters, tensors)
            errors = {key: ((tensors[key] - value).abs().max() / value.abs().max()).item()
                      for key, value in expected.items()}
            worst = max(errors, key=errors.get)
            good = errors[worst] <= LIMIT
            print(f"{'ok  ' if good else 'FAIL'} {chain[-1]}: {errors[worst]:.1e} at {worst}", flush=True)
            failed += not good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
