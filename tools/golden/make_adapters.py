"""Writes tests/golden/adapters: random adapters over models/ and what transformers computes with them.

tools/load_adapter.py puts each adapter into transformers' model, so that the program, which is compared with these
numbers, and that script are held to one another.
"""

import hashlib
import json
import pathlib
import shutil
import struct
import sys

import torch
from PIL import Image
from transformers import (
    AutoImageProcessor,
    BertForSequenceClassification,
    BertTokenizer,
    Dinov2ForImageClassification,
    ViTForImageClassification,
)

import common

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from load_adapter import load_adapter  # noqa: E402

ADAPTERS, MODELS = common.GOLDEN / "adapters", common.GOLDEN / "models"
CLASSES = {"bert": BertForSequenceClassification, "dinov2": Dinov2ForImageClassification, "vit": ViTForImageClassification}
TRAINED = ("hedgehog", "hedgehog-softmax", "t2r", "t2r-hh")
KERNELS = {
    "bert": ["softmax", "hydra-cosine", "hydra-tanh-l2", "hydra-mean", "hydra-tanh-softmax", "hydra-sigmoid-softmax",
             "poly-nl", "elu", "relu", "exp-t1", "exp-t2", "taylor", *TRAINED, "hedgehog:bias=0,shared=1"],
    "dinov2": ["softmax", "hydra-cosine", "hydra-mean", "poly-nl", "hedgehog"],
    "vit": ["hydra-cosine", "exp-t1"],
}
TEXT = "The cat tokenizes a word of the mat."
PICTURE = common.GOLDEN / "images" / "pictures" / "gradient.png"


def tensors_of(name, spec, model):
    """A classifier of three classes, for trained kernels the maps of both layers, for some parts of the last layer."""
    rng, width = common.generator(name), model.config.hidden_size
    heads = model.config.num_attention_heads
    draw = lambda *shape, scale=1.0: torch.from_numpy((scale * rng.standard_normal(shape)).astype("float32"))
    attention = "attention.self" if name.startswith("bert") else "attention.attention"
    layer = "encoder.layer.1."
    tensors = {layer + "attention.output.dense.bias": draw(width, scale=0.3)}
    if spec in ("softmax", "hydra-cosine"):
        tensors |= {f"{layer}{attention}.{part}.weight": draw(width, width, scale=width**-0.5) for part in ("query", "key")}
    if name.startswith("vit"):
        tensors[layer + "intermediate.dense.bias"] = draw(model.config.intermediate_size, scale=0.3)
        tensors[layer + "output.dense.weight"] = draw(width, model.config.intermediate_size, scale=0.2)
    # On a DINOv2 one of the class token alone and one that reads the mean patch, too.
    tensors["classifier.weight"] = draw(3, 2 * width if name == "dinov2-softmax" else width, scale=0.5)
    tensors["classifier.bias"] = draw(3)
    kernel = spec.partition(":")[0]
    for number in (0, 1) if kernel in TRAINED else ():
        for side in ("query_map",) if "shared=1" in spec else ("query_map", "key_map"):
            start = f"kernel.{number}.{kernel}.{side}."
            noise = draw(heads, width // heads, width // heads, scale=0.2)
            tensors[start + "weight"] = torch.eye(width // heads) + noise
            if "bias=0" not in spec:
                tensors[start + "bias"] = draw(heads, width // heads, scale=0.2)
    return {key: value.half() for key, value in tensors.items()}


def write_adapter(path, tensors, metadata):
    """safetensors by hand: the library writes several strings of metadata in an order of its own."""
    header, data = {"__metadata__": metadata}, b""
    for key, value in sorted(tensors.items()):
        raw = value.contiguous().numpy().tobytes()
        header[key] = {"dtype": "F16", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make_adapter(model_name, spec):
    model = common.load(CLASSES[model_name], MODELS / model_name)
    name = f"{model_name}-{spec.replace(':', '-').replace(',', '-').replace('=', '')}"
    layers = [{"layer": layer, "kernel": spec} for layer in (0, 1)]
    weights = (MODELS / model_name / "model.safetensors").read_bytes()
    metadata = {"format": "hydrascope-adapter-1", "name": name, "base": hashlib.sha256(weights).hexdigest()}
    metadata |= {"role": "tail" if spec == "softmax" else "schedule", "layers": json.dumps(layers)}
    metadata |= {"classes": json.dumps([{"id": str(i), "label": label} for i, label in enumerate(("red", "green", "blue"))])}
    file = ADAPTERS / f"{name}.safetensors"
    write_adapter(file, tensors_of(name, spec, model), metadata)
    load_adapter(model, file)
    if model_name == "bert":
        # In a batch with a longer text, so that there is padding to be left out.
        tokenizer = BertTokenizer.from_pretrained(MODELS / model_name)
        inputs = tokenizer([TEXT, TEXT + " " + TEXT], padding=True, return_tensors="pt", return_token_type_ids=True)
        tokens = int(inputs["attention_mask"][0].sum())
    else:
        processor = AutoImageProcessor.from_pretrained(MODELS / model_name, backend="pil")
        inputs, tokens = processor(Image.open(PICTURE).convert("RGB"), return_tensors="pt"), None
    with torch.no_grad():
        out = model(**inputs, output_hidden_states=True)
    return {f"{name}.logits": out.logits[:1], f"{name}.hidden.2": out.hidden_states[2][:1, :tokens]}


def main():
    if ADAPTERS.exists():
        shutil.rmtree(ADAPTERS)
    ADAPTERS.mkdir()
    expected = {}
    for model_name, specs in KERNELS.items():
        for spec in specs:
            expected |= make_adapter(model_name, spec)
    common.write_tensors(ADAPTERS / "expected" / "expected.safetensors", expected, {"text": TEXT})


if __name__ == "__main__":
    main()
