"""Compares tests/golden/adapters/expected with the kernels' formulas in float64: numpy alone, no code of make_adapters.py.

    check_adapters.py PROGRAM

PROGRAM (`hydrascope`) gives the embedding of the picture; the blocks behind it are computed here.
"""

import argparse
import json
import math
import pathlib
import re
import struct
import subprocess
import tempfile

import numpy as np

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
LIMIT = 3e-6  # the files are float32; 1.1e-6 of the largest value is measured
DTYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}

erf = np.vectorize(math.erf)


def read(file):
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata, values = header.pop("__metadata__", {}), data[8 + length :]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(values[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"]).astype(np.float64)
    return tensors, metadata


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def softmax(x, axis=-1):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def mean(x):
    return x / math.sqrt(len(x))


# φ_Q and φ_K of whole rows (N, D), Hydra paper.
ROW_MAPS = {
    "hydra-cosine": (unit, unit),
    "hydra-tanh-l2": (np.tanh, unit),
    "hydra-mean": (mean, mean),
    "poly-nl": (mean, mean),
    "hydra-tanh-softmax": (np.tanh, lambda x: softmax(x, 0)),
    "hydra-sigmoid-softmax": (lambda x: 1 / (1 + np.exp(-x)), lambda x: softmax(x, 0)),
}
# φ of heads (H, N, d), Hedgehog paper.
HEAD_MAPS = {
    "elu": lambda x: np.where(x > 0, 1 + x, np.exp(np.minimum(x, 0))),
    "relu": lambda x: np.maximum(x, 0),
    "t2r": lambda x: np.maximum(x, 0),
    "t2r-hh": lambda x: np.maximum(x, 0),
    "exp-t1": np.exp,
    "exp-t2": lambda x: np.exp(2 * x),
    "hedgehog": lambda x: np.concatenate([np.exp(x), np.exp(-x)], -1),
    "hedgehog-softmax": lambda x: np.concatenate([softmax(x), softmax(-x)], -1),
}


def attention(kernel, maps, heads, x, q, k, v):
    """q, k, v and the layer's input x (N, D); maps: the kernel's own W and b. All N×N weights are formed."""
    if kernel in ROW_MAPS:
        query_map, key_map = ROW_MAPS[kernel]
        return query_map(x if kernel == "poly-nl" else q) * (key_map(k) * v).sum(0)
    q, k, v = (part.reshape(len(x), heads, -1).swapaxes(0, 1) for part in (q, k, v))
    scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
    if kernel == "softmax":
        weights = np.exp(scores)
    elif kernel == "taylor":
        weights = 1 + scores + scores**2 / 2
    else:
        def features(part, side):
            projection = {name: maps.get(f"{side}.{name}", maps.get(f"query_map.{name}")) for name in ("weight", "bias")}
            if projection["weight"] is not None:
                part = part @ projection["weight"]
            if projection["bias"] is not None:
                part = part + projection["bias"][:, None]
            return HEAD_MAPS[kernel](part)

        weights = features(q, "query_map") @ features(k, "key_map").swapaxes(1, 2)
    total = weights.sum(-1, keepdims=True)
    weights = np.where(total == 0, 0, weights / np.where(total == 0, 1, total))
    return (weights @ v).swapaxes(0, 1).reshape(x.shape)


class Encoder:
    """A model of two layers under one adapter."""

    def __init__(self, model, adapter, metadata):
        self.config = json.loads((GOLDEN / "models" / model / "config.json").read_text())
        self.kernel = json.loads(metadata["layers"])[0]["kernel"].split(":")[0]
        weights = read(GOLDEN / "models" / model / "model.safetensors")[0]
        self.weights = {re.sub(r"^(bert|vit|dinov2)\.", "", name): value for name, value in weights.items()}
        self.maps = [{}, {}]
        for name, value in adapter.items():
            if own := re.match(r"kernel\.(\d)\.[^.]*\.(.*)", name):
                self.maps[int(own[1])][own[2]] = value
            else:
                self.weights[name] = value

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights.get(name + ".bias", 0)

    def attend(self, x, layer, inner):
        q, k, v = (self.linear(x, f"{layer}attention.{inner}.{part}") for part in ("query", "key", "value"))
        own = self.maps[int(layer.split(".")[2])]
        out = attention(self.kernel, own, self.config["num_attention_heads"], x, q, k, v)
        return self.linear(out, layer + "attention.output.dense")

    def bert(self, ids):
        embeddings = self.weights["embeddings.word_embeddings.weight"][ids]
        embeddings = embeddings + self.weights["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm(embeddings + self.weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in ("encoder.layer.0.", "encoder.layer.1."):
            x = self.norm(x + self.attend(x, layer, "self"), layer + "attention.output.LayerNorm")
            mlp = self.linear(gelu(self.linear(x, layer + "intermediate.dense")), layer + "output.dense")
            x = self.norm(x + mlp, layer + "output.LayerNorm")
        return self.linear(np.tanh(self.linear(x[:1], "pooler.dense")), "classifier"), x

    def vision(self, x):
        dino = self.config["model_type"] == "dinov2"
        norms = ("norm1", "norm2") if dino else ("layernorm_before", "layernorm_after")
        mlp = ("mlp.fc1", "mlp.fc2") if dino else ("intermediate.dense", "output.dense")
        for layer in ("encoder.layer.0.", "encoder.layer.1."):
            scales = [self.weights.get(f"{layer}layer_scale{i}.lambda1", 1) for i in (1, 2)]
            x = x + scales[0] * self.attend(self.norm(x, layer + norms[0]), layer, "attention")
            inner = gelu(self.linear(self.norm(x, layer + norms[1]), layer + mlp[0]))
            x = x + scales[1] * self.linear(inner, layer + mlp[1])
        final = self.norm(x, "layernorm")
        with_mean = self.weights["classifier.weight"].shape[1] == 2 * final.shape[1]
        read_out = np.concatenate([final[0], final[1:].mean(0)]) if with_mean else final[0]
        return self.linear(read_out[None], "classifier"), x


def embedding(program, model):
    with tempfile.TemporaryDirectory() as scratch:
        output = pathlib.Path(scratch) / "run.safetensors"
        command = [program, "run", "--model", GOLDEN / "models" / model, "--tensors", "hidden", "--output", output]
        command += ["--image", GOLDEN / "images" / "pictures" / "gradient.png"]
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
        return read(output)[0]["hidden.0"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    program = parser.parse_args().program
    expected, _ = read(GOLDEN / "adapters" / "expected" / "expected.safetensors")
    # The second text of this batch is that of the adapters.
    ids = read(GOLDEN / "models" / "bert" / "expected-batch.safetensors")[0]["input_ids"][1].astype(int)
    worst = 0
    for file in sorted((GOLDEN / "adapters").glob("*.safetensors")):
        adapter, metadata = read(file)
        model = file.name.split("-")[0]
        encoder = Encoder(model, adapter, metadata)
        logits, hidden = encoder.bert(ids) if model == "bert" else encoder.vision(embedding(program, model))
        for found, name in ((logits, "logits"), (hidden[None], "hidden.2")):
            reference = expected[f"{file.stem}.{name}"]
            error = np.abs(found - reference).max() / np.abs(reference).max()
            worst = max(worst, error)
            print(f"{file.stem:32} {name:8} {error:.1e}")
    if not worst <= LIMIT:
        raise SystemExit(f"{worst:.1e} is more than {LIMIT}")


if __name__ == "__main__":
    main()
