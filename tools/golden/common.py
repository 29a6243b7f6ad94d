"""What the golden scripts share: random weights, checkpoint folders, reference runs with transformers.

Expected values are always computed in float32 on the CPU, with eager attention, from exactly the values that the
checkpoint stores (F16 and BF16 are widened, never recomputed).
"""

import json
import math
import os
import pathlib
import sys
import tempfile
import zlib

import numpy as np
import torch
from safetensors.torch import load_file, save_file

torch.set_num_threads(1)

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"


def generator(name):
    """A numpy random generator that depends on the name alone."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def randomise(model, name, embedding_scale=1.0):
    """Weights with enough variance that attention is peaked and every parameter matters.

    embedding_scale shrinks the vision embeddings, so that the first LayerNorm's epsilon becomes visible.
    """
    rng = generator(name)
    with torch.no_grad():
        for key, parameter in sorted(model.named_parameters()):
            noise = torch.from_numpy(rng.standard_normal(tuple(parameter.shape)).astype(np.float32))
            low = key.lower()
            if "lambda1" in low:
                value = 0.7 + 0.3 * noise
            elif "norm" in low:
                value = 0.2 * noise + (1.0 if low.endswith("weight") else 0.0)
            elif "projection.weight" in low:
                value = noise * (embedding_scale / math.sqrt(parameter[0].numel()))
            elif "embeddings" in low:
                value = noise * (0.7 * (embedding_scale if "layernorm" not in low else 1.0))
            elif low.endswith("bias"):
                value = 0.2 * noise
            else:
                gain = 1.5 if any(part in low for part in ("q_proj", "k_proj", "query", "key")) else 1.0
                value = noise * (gain / math.sqrt(parameter.shape[-1]))
            parameter.copy_(value)
    return model


def save_checkpoint(model, folder, dtype=torch.float32):
    """config.json and model.safetensors under the names that save_pretrained gives, stored as dtype."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        tensors = load_file(f"{scratch}/model.safetensors")
        write_tensors(folder / "model.safetensors", {key: value.to(dtype) for key, value in tensors.items()})
        config = json.loads((pathlib.Path(scratch) / "config.json").read_text())
    config["dtype"] = str(dtype).removeprefix("torch.")
    write_json(folder / "config.json", config)


def load(model_class, folder):
    """The checkpoint as transformers reads it, widened to float32; every weight that counts must have been found."""
    model, info = model_class.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    missing = {key for key in info["missing_keys"] if "mask_token" not in key and "pooler" not in key}
    assert not missing and not info["unexpected_keys"] and not info["mismatched_keys"], (folder.name, info)
    return model.eval()


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def add_write(parser):
    parser.add_argument("--write", type=pathlib.Path, help="JSON of what was found, for tools/results keep")


def write_found(args, rows, **more):
    """What a comparison of args.program found, with its command, if --write asks for it."""
    if args.write is None:
        return
    os.environ["HYDRASCOPE_PROGRAM"] = str(args.program)  # which measured_by() describes
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import experiment

    words = [word for word in sys.argv[1:] if word not in ("--write", str(args.write), f"--write={args.write}")]
    command = f"python tools/golden/{pathlib.Path(sys.argv[0]).name} {experiment.command_text(words)}"
    experiment.write_json(args.write, {"command": command, **experiment.measured_by(), "rows": rows, **more})


def compact(value):
    """JSON on one line; everything outside printable ASCII is escaped (as UTF-16 units, the JSON way)."""
    return json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")


def write_tensors(path, tensors, metadata=None):
    """A safetensors file; metadata holds at most one string, because its order in the file is not fixed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {key: torch.as_tensor(value).contiguous().clone() for key, value in tensors.items()}
    save_file(tensors, path, metadata=metadata or {"format": "pt"})


def read_tensors(path):
    return load_file(path)



@torch.no_grad()
def run_model(model, **inputs):
    """Logits, hidden states and attention weights under the names that `hydrascope run --output` uses."""
    out = model(**inputs, output_hidden_states=True, output_attentions=True)
    result = {}
    if getattr(out, "logits", None) is not None:
        result["logits"] = out.logits
    result.update({f"hidden.{index}": value for index, value in enumerate(out.hidden_states)})
    result.update({f"attention.{index}": value for index, value in enumerate(out.attentions)})
    layers = model.config.num_hidden_layers
    assert f"hidden.{layers}" in result and f"hidden.{layers + 1}" not in result
    assert f"attention.{layers - 1}" in result and f"attention.{layers}" not in result
    return result


def check_last_hidden(model, base, pixels, result, **extra):
    """The last hidden state of a vision model is the one before the final LayerNorm."""
    with torch.no_grad():
        last = base(pixels, **extra).last_hidden_state
        again = base.layernorm(result[f"hidden.{model.config.num_hidden_layers}"])
    assert torch.allclose(last, again, atol=1e-5)


def random_pixels(name, height, width):
    """Normalised pixels as a picture would give them: smooth waves and noise, about unit variance."""
    rng = generator(name)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    waves = [np.sin(x / 3 + channel) + np.cos(y / 5 - channel) for channel in range(3)]
    pixels = 0.7 * np.stack(waves) + 0.5 * rng.standard_normal((3, height, width))
    return torch.from_numpy(pixels.astype(np.float32))[None]


def mean_pooled(hidden, mask):
    """Sum of the real tokens' last hidden states over their count, as sentence encoders do (not normalised)."""
    weights = mask[..., None].to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1)
