"""Turns the ONNX file of a DINOv2 ViT-S/14 backbone into a Hugging Face folder (Dinov2Model).

    python3 convert_vit_small.py vit_s_focus.onnx FOLDER

Writes config.json, preprocessor_config.json and model.safetensors. Needs nothing beyond Python itself: the few parts of
ONNX (a protocol buffer) and safetensors that occur here are read and written below. Weights of linear layers have no
names of their own in the file; they are found through the MatMul nodes that use them, whose names spell the module.
"""

import array
import json
import math
import pathlib
import re
import struct
import sys

from whole_file import whole_file

LAYERS, WIDTH, HEADS, PATCH, IMAGE = 12, 384, 6, 14, 518


# ---- protocol buffers: a message is a run of (field number, wire type, value) ----------------------------------------


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"wire type {wire} does not occur in ONNX")
        yield number, value


def text(value):
    return bytes(value).decode()


def read_graph(path):
    """Returns the float32 initializers {name: (shape, bytes)} and the nodes [(operator, name, inputs, outputs)]."""
    model = memoryview(pathlib.Path(path).read_bytes())
    graph = next(value for number, value in fields(model) if number == 7)
    tensors, nodes = {}, []
    for number, value in fields(graph):
        if number == 1:
            name, operator, inputs, outputs = "", "", [], []
            for key, part in fields(value):
                if key == 1:
                    inputs.append(text(part))
                elif key == 2:
                    outputs.append(text(part))
                elif key == 3:
                    name = text(part)
                elif key == 4:
                    operator = text(part)
            nodes.append((operator, name, inputs, outputs))
        elif number == 5:
            name, shape, kind, raw = "", [], 0, b""
            for key, part in fields(value):
                if key == 1 and isinstance(part, int):
                    shape.append(part)
                elif key == 1:  # packed
                    at = 0
                    while at < len(part):
                        size, at = varint(part, at)
                        shape.append(size)
                elif key == 2:
                    kind = part
                elif key == 8:
                    name = text(part)
                elif key == 9:
                    raw = part
            if kind == 1 and len(raw) == 4 * math.prod(shape):
                tensors[name] = (tuple(shape), raw)
    return tensors, nodes


# ---- the model -------------------------------------------------------------------------------------------------------


def transposed(shape, raw):
    rows, columns = shape
    source = array.array("f", bytes(raw))
    target = array.array("f")
    for column in range(columns):
        target.extend(source[column::columns])
    return (columns, rows), target.tobytes()


def expected_shapes():
    shapes = {
        "embeddings.cls_token": (1, 1, WIDTH),
        "embeddings.position_embeddings": (1, 1 + (IMAGE // PATCH) ** 2, WIDTH),
        "embeddings.patch_embeddings.projection.weight": (WIDTH, 3, PATCH, PATCH),
        "embeddings.patch_embeddings.projection.bias": (WIDTH,),
        "layernorm.weight": (WIDTH,),
        "layernorm.bias": (WIDTH,),
    }
    for i in range(LAYERS):
        for part, rows, columns in (
            ("attention.attention.query", WIDTH, WIDTH),
            ("attention.attention.key", WIDTH, WIDTH),
            ("attention.attention.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("mlp.fc1", 4 * WIDTH, WIDTH),
            ("mlp.fc2", WIDTH, 4 * WIDTH),
        ):
            shapes[f"encoder.layer.{i}.{part}.weight"] = (rows, columns)
            shapes[f"encoder.layer.{i}.{part}.bias"] = (rows,)
        for part in ("norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias", "layer_scale1.lambda1", "layer_scale2.lambda1"):
            shapes[f"encoder.layer.{i}.{part}"] = (WIDTH,)
    return shapes


def gather(tensors, nodes):
    weights = {}
    for name, tensor in tensors.items():
        if name.startswith("backbone."):
            weights[name.removeprefix("backbone.")] = tensor
    for operator, name, inputs, _ in nodes:
        match = re.fullmatch(r"/backbone/(encoder/layer\.\d+/.+)/MatMul", name)
        if operator == "MatMul" and match and inputs[1] in tensors:
            weights[match[1].replace("/", ".") + ".weight"] = transposed(*tensors[inputs[1]])
    # The position embeddings lie in two parts: that of the class token (joined to the others by a Concat) and those of
    # the patches. No other tensors of the embeddings have these shapes and no name of their own.
    patches = (IMAGE // PATCH) ** 2
    joined = {name for operator, _, inputs, _ in nodes if operator == "Concat" for name in inputs}
    head = [t for name, t in tensors.items() if t[0] == (1, 1, WIDTH) and not name.startswith("backbone.") and name in joined]
    tail = [t for name, t in tensors.items() if math.prod(t[0]) == patches * WIDTH and t[0][-1] == WIDTH]
    if len(head) != 1 or len(tail) != 1:
        raise ValueError(f"position embeddings: {len(head)} candidates for the class token, {len(tail)} for the patches")
    weights["embeddings.position_embeddings"] = ((1, 1 + patches, WIDTH), bytes(head[0][1]) + bytes(tail[0][1]))

    expected = expected_shapes()
    for name, shape in expected.items():
        if name not in weights:
            raise ValueError(f"{name} is missing")
        if tuple(weights[name][0]) != shape:
            raise ValueError(f"{name} has the shape {weights[name][0]}, not {shape}")
    return {name: weights[name] for name in expected}


def write_safetensors(path, weights):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, (shape, raw) in weights.items():
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, offset + len(raw)]}
        offset += len(raw)
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    with whole_file(path) as file:
        file.write(struct.pack("<Q", len(encoded)))
        file.write(encoded)
        for _, raw in weights.values():
            file.write(raw)


CONFIG = {
    "architectures": ["Dinov2Model"],
    "attention_probs_dropout_prob": 0.0,
    "drop_path_rate": 0.0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "hidden_size": WIDTH,
    "image_size": IMAGE,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-06,
    "layerscale_value": 1.0,
    "mlp_ratio": 4,
    "model_type": "dinov2",
    "num_attention_heads": HEADS,
    "num_channels": 3,
    "num_hidden_layers": LAYERS,
    "patch_size": PATCH,
    "qkv_bias": True,
    "torch_dtype": "float32",
    "use_swiglu_ffn": False,
}

PREPROCESSOR = {
    "image_processor_type": "BitImageProcessor",
    "do_convert_rgb": True,
    "do_resize": True,
    "size": {"shortest_edge": 224},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": 224, "width": 224},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
}


def write_json(path, value):
    with whole_file(path) as file:
        file.write((json.dumps(value, indent=2) + "\n").encode())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"error: {folder}: cannot be made ({error.strerror}); name another folder")
    weights = gather(*read_graph(sys.argv[1]))
    write_safetensors(folder / "model.safetensors", weights)
    write_json(folder / "preprocessor_config.json", PREPROCESSOR)
    write_json(folder / "config.json", CONFIG)  # last: a folder with both is a model


if __name__ == "__main__":
    main()
