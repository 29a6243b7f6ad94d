"""Turns the GGUF file of SmolLM2-135M-Instruct into a Hugging Face folder (LlamaForCausalLM) in float16.

    PYTHONPATH=FOLDER_OF_GGUF python3 convert_smollm2.py MODEL.gguf FOLDER

Writes config.json, generation_config.json, tokenizer.json, tokenizer_config.json and model.safetensors. Needs NumPy and
the modules gguf_reader, quants, lazy and constants of PyPI's gguf, which read the file and dequantize its blocks.
"""

import json
import pathlib
import struct
import sys

try:
    import numpy
except ModuleNotFoundError:
    sys.exit("error: convert_smollm2.py: NumPy is missing; install it (Debian: python3-numpy)")
from gguf.constants import TokenType
from gguf.gguf_reader import GGUFReader
from gguf.quants import dequantize

from whole_file import whole_file

# GGUF's names of a layer's tensors → Hugging Face's
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OTHER_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


class Metadata:
    def __init__(self, reader):
        self.fields = reader.fields

    def get(self, key):
        if key not in self.fields:
            raise ValueError(f"the metadata has no {key}")
        return self.fields[key].contents()

    def expect(self, key, value):
        if self.get(key) != value:
            raise ValueError(f"{key} is {self.get(key)!r}, not {value!r}")


def shortest(value):
    """The float32 as the shortest decimal that gives it again: 1e-05, not 9.999999747378752e-06."""
    return float(str(numpy.float32(value)))


def make_config(metadata, tied):
    metadata.expect("general.architecture", "llama")
    heads = metadata.get("llama.attention.head_count")
    width = metadata.get("llama.embedding_length")
    metadata.expect("llama.rope.dimension_count", width // heads)
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
        "head_dim": width // heads,
        "hidden_act": "silu",
        "hidden_size": width,
        "initializer_range": 0.041666666666666664,
        "intermediate_size": metadata.get("llama.feed_forward_length"),
        "max_position_embeddings": metadata.get("llama.context_length"),
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": heads,
        "num_hidden_layers": metadata.get("llama.block_count"),
        "num_key_value_heads": metadata.get("llama.attention.head_count_kv"),
        "rms_norm_eps": shortest(metadata.get("llama.attention.layer_norm_rms_epsilon")),
        "rope_scaling": None,
        "rope_theta": shortest(metadata.get("llama.rope.freq_base")),
        "tie_word_embeddings": tied,
        "torch_dtype": "float16",
        "use_cache": True,
        "vocab_size": metadata.get("llama.vocab_size"),
    }


# ---- tokenizer -------------------------------------------------------------------------------------------------------


def make_tokenizer(metadata):
    metadata.expect("tokenizer.ggml.model", "gpt2")
    metadata.expect("tokenizer.ggml.pre", "smollm")
    tokens = metadata.get("tokenizer.ggml.tokens")
    kinds = metadata.get("tokenizer.ggml.token_type")
    unknown = set(kinds) - {TokenType.NORMAL, TokenType.CONTROL}
    if len(kinds) != len(tokens) or unknown:
        raise ValueError(f"token types of other kinds than normal and control: {sorted(unknown)}")
    byte_level = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": i,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for i, token in enumerate(tokens)
            if kinds[i] == TokenType.CONTROL
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                byte_level | {"add_prefix_space": metadata.get("tokenizer.ggml.add_space_prefix")},
            ],
        },
        "post_processor": None,
        "decoder": byte_level | {"add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": metadata.get("tokenizer.ggml.merges"),
        },
    }


def make_tokenizer_config(metadata):
    def token(name):
        return metadata.get("tokenizer.ggml.tokens")[metadata.get(f"tokenizer.ggml.{name}_token_id")]

    # PreTrainedTokenizerFast takes tokenizer.json as it stands.
    return {
        "add_bos_token": metadata.get("tokenizer.ggml.add_bos_token"),
        "add_prefix_space": metadata.get("tokenizer.ggml.add_space_prefix"),
        "bos_token": token("bos"),
        "chat_template": metadata.get("tokenizer.chat_template"),
        "clean_up_tokenization_spaces": False,
        "eos_token": token("eos"),
        "model_max_length": metadata.get("llama.context_length"),
        "pad_token": token("padding"),
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": token("unknown"),
    }


# ---- weights ---------------------------------------------------------------------------------------------------------


def expected_shapes(config):
    width, inner = config["hidden_size"], config["intermediate_size"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    layer = {
        "input_layernorm": (width,),
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (width, width),
        "post_attention_layernorm": (width,),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], width)}
    for i in range(config["num_hidden_layers"]):
        shapes |= {f"model.layers.{i}.{name}.weight": shape for name, shape in layer.items()}
    shapes["model.norm.weight"] = (width,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], width)
    return shapes


def hugging_face_name(name):
    if name in OTHER_NAMES:
        return OTHER_NAMES[name]
    parts = name.split(".")
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in LAYER_NAMES and parts[3] == "weight":
        return f"model.layers.{parts[1]}.{LAYER_NAMES[parts[2]]}.weight"
    raise ValueError(f"no place for the tensor {name}")


def in_rotary_order(rows, heads):
    """llama.cpp keeps the two rows of a rotated pair side by side; Hugging Face keeps them half a head apart."""
    size, width = rows.shape[0] // heads, rows.shape[1]
    return rows.reshape(heads, size // 2, 2, width).swapaxes(1, 2).reshape(rows.shape)


def weights(tensors, shapes, config):
    """Yields the float16 weights in the order of `shapes`."""
    for name, shape in shapes.items():
        tensor = tensors[name]
        values = dequantize(tensor.data, tensor.tensor_type)
        if values.shape != shape:
            raise ValueError(f"{tensor.name} has the shape {values.shape}, not {shape}")
        if name.endswith(".q_proj.weight"):
            values = in_rotary_order(values, config["num_attention_heads"])
        elif name.endswith(".k_proj.weight"):
            values = in_rotary_order(values, config["num_key_value_heads"])
        halves = values.astype("<f2")
        if not numpy.isfinite(halves).all():
            raise ValueError(f"{tensor.name} has values that float16 cannot hold")
        yield numpy.ascontiguousarray(halves)


def write_safetensors(path, shapes, arrays):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        size = 2 * int(numpy.prod(shape))
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    with whole_file(path) as file:
        file.write(struct.pack("<Q", len(encoded)))
        file.write(encoded)
        for array in arrays:
            file.write(array.data)


def write_json(path, value):
    with whole_file(path) as file:
        file.write((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"error: {folder}: cannot be made ({error.strerror}); name another folder")
    reader = GGUFReader(sys.argv[1])
    metadata = Metadata(reader)
    tensors = {hugging_face_name(tensor.name): tensor for tensor in reader.tensors}
    config = make_config(metadata, tied="lm_head.weight" not in tensors)
    shapes = expected_shapes(config)
    if tensors.keys() != shapes.keys():
        raise ValueError(f"tensors are missing or superfluous: {sorted(tensors.keys() ^ shapes.keys())}")
    write_safetensors(folder / "model.safetensors", shapes, weights(tensors, shapes, config))
    write_json(folder / "generation_config.json", {f"{name}_token_id": config[f"{name}_token_id"] for name in ("bos", "eos", "pad")})
    write_json(folder / "tokenizer.json", make_tokenizer(metadata))
    write_json(folder / "tokenizer_config.json", make_tokenizer_config(metadata))
    write_json(folder / "config.json", config)  # last: a folder with both is a model


if __name__ == "__main__":
    main()
