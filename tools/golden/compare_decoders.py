"""Compares decoders with transformers, live: random models of five kinds, and the perplexity of a real one.

    compare_decoders.py PROGRAM SCRATCH [--model FOLDER --data TEXT [--windows 256,1024] [--characters 60000]] [--write JSON]

Random models have a byte-level tokenizer trained here, and are run on texts of 1 to 1,024 tokens: logits, hidden states,
attention and losses within 1e-4 of the largest value. With --model also its perplexity, window by window, within 0.1 %.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import common
import make_decoders
from make_decoders import TEXT, run_model

def compare(name, actual, expected, worst):
    scale = expected.abs().max().item()
    difference = (actual - expected).abs().max().item() / scale
    worst[name.split(".")[0]] = max(worst.get(name.split(".")[0], 0.0), difference)


def random_model(program, scratch, name, model_class, config):
    folder = scratch / name
    common.save_checkpoint(common.randomise(model_class(config), name), folder)
    tokenizer = make_decoders.write_tokenizer(folder, 320)
    model = common.load(model_class, folder)
    final_norm = model.transformer.ln_f if hasattr(model, "transformer") else model.model.norm
    worst = {}
    ids = tokenizer.encode(TEXT * 30).ids
    for count in (1, 2, 17, 256, 1024):
        text = tokenizer.decode(ids[:count])
        row = tokenizer.encode(text).ids
        output = scratch / "run.safetensors"
        subprocess.run([program, "run", "--model", folder, "--text", text, "--output", output, "--no-adapter",
                        "--tensors", "logits,hidden,attention,loss"], check=True, capture_output=True)
        actual = common.read_tensors(output)
        expected = run_model(model, final_norm, input_ids=torch.tensor([row]))
        for key, value in expected.items():
            compare(key, actual[key], value, worst)
        if len(row) > 1:
            loss = torch.nn.functional.cross_entropy(expected["logits"][0, :-1], torch.tensor(row[1:]), reduction="none")
            compare("loss", actual["loss"][0], loss, worst)
    good = all(value < 1e-4 for value in worst.values())
    print("ok  " if good else "FAIL", name, {key: f"{value:.1e}" for key, value in worst.items()}, flush=True)
    return good, {"model": name, "errors": worst}


@torch.no_grad()
def perplexity(program, folder, data, window, characters):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    text = pathlib.Path(data).read_text(encoding="utf-8")[:characters]
    ids = torch.tensor(tokenizer(text)["input_ids"])
    total, count = 0.0, 0
    for first in range(0, len(ids), window):
        piece = ids[first:first + window]
        if len(piece) < 2:
            continue
        logits = model(input_ids=piece[None]).logits[0, :-1]
        total += torch.nn.functional.cross_entropy(logits, piece[1:], reduction="sum").item()
        count += len(piece) - 1
    expected = math.exp(total / count)
    done = subprocess.run([program, "evaluate", "--perplexity", "--model", folder, "--data", data, "--window",
                           str(window), "--characters", str(characters), "--no-adapter", "--json"],
                          check=True, capture_output=True)
    actual = json.loads(done.stdout)
    good = actual["tokens"] == count and abs(actual["perplexity"] / expected - 1) < 1e-3
    print("ok  " if good else "FAIL", f"window {window}: {actual['perplexity']:.4f}, transformers {expected:.4f}, "
          f"{count} tokens", flush=True)
    return good, {"model": pathlib.Path(folder).name, "window": window, "tokens": count, "perplexity": actual["perplexity"],
                  "transformers": expected}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--data")
    parser.add_argument("--windows", default="256,1024")
    parser.add_argument("--characters", type=int, default=60000)
    common.add_write(parser)
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    results = [random_model(arguments.program, arguments.scratch, *kind)
               for kind in make_decoders.kinds(vocabulary=320, positions=1024, width=64)]
    if arguments.model:
        results += [perplexity(arguments.program, arguments.model, arguments.data, int(window), arguments.characters)
                    for window in arguments.windows.split(",")]
    if not all(good for good, _ in results):
        return 1
    common.write_found(arguments, [row for _, row in results])
    return 0


if __name__ == "__main__":
    sys.exit(main())
