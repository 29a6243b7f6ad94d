"""Writes tests/golden/models: tiny random checkpoints and what transformers computes from them."""

import functools
import json
import shutil

import timm
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertTokenizer,
    DeiTConfig,
    DeiTForImageClassification,
    DeiTForImageClassificationWithTeacher,
    Dinov2Config,
    Dinov2ForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

import common
from timm_names import to_timm

MODELS = common.GOLDEN / "models"
IMAGENET_MEAN, IMAGENET_STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
PIECES = "hydra attention sum ##s over token ##ize not head the a cat sit mat on of is linear soft ##max word".split()
TEXTS = {
    "sentence": ("The Hydra attention sums over tokens, not heads!", None),
    "pair": ("The cat sits on the mat.", "Is attention linear?"),
    "batch": (["Soft attention", "The cat tokenizes a word of the mat."], None),
}


def labels(*names):
    return {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}


def processor(kind, size, crop=None, mean=IMAGENET_MEAN, std=IMAGENET_STD, resample=3):
    """preprocessor_config.json as the wild checkpoints of these families have it."""
    config = {"do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": mean, "image_std": std}
    config |= {"image_processor_type": kind, "resample": resample, "rescale_factor": 1 / 255, "size": size}
    if crop:
        config |= {"crop_size": {"height": crop, "width": crop}, "do_center_crop": True}
    return config


def vision_expected(model, folder, sizes, interpolate=True):
    """One expected file per (height, width); the first is expected.safetensors."""
    extra = {"interpolate_pos_encoding": True} if interpolate else {}
    for index, (height, width) in enumerate(sizes):
        pixels = common.random_pixels(f"{folder.name}-{height}x{width}", height, width)
        result = common.run_model(model, pixel_values=pixels, **extra)
        common.check_last_hidden(model, getattr(model, model.base_model_prefix), pixels, result, **extra)
        name = "expected.safetensors" if index == 0 else f"expected-{height}x{width}.safetensors"
        common.write_tensors(folder / name, {"pixels": pixels, **result})


def make_vision(name, config, model_class, preprocessing, sizes, dtype, interpolate=True, embedding_scale=1.0):
    folder = MODELS / name
    model = common.randomise(model_class(config), name, embedding_scale)
    common.save_checkpoint(model, folder, dtype)
    common.write_json(folder / "preprocessor_config.json", preprocessing)
    model = common.load(model_class, folder)
    vision_expected(model, folder, sizes, interpolate)
    return model


def make_timm(name, source, architecture, distilled):
    """The same checkpoint as timm would have written it; expected values at timm's epsilon 1e-6."""
    folder = MODELS / name
    folder.mkdir(parents=True, exist_ok=True)
    tensors = to_timm(common.read_tensors(MODELS / source / "model.safetensors"))
    common.write_tensors(folder / "model.safetensors", tensors)
    model_class = DeiTForImageClassificationWithTeacher if distilled else ViTForImageClassification
    model = common.load(model_class, MODELS / source)
    config = model.config
    side = [config.image_size, config.image_size]
    arguments = {"num_classes": config.num_labels, "img_size": side, "in_chans": 3, "global_pool": "token"}
    arguments |= {"patch_size": config.patch_size, "embed_dim": config.hidden_size}
    arguments |= {"depth": config.num_hidden_layers, "num_heads": config.num_attention_heads}
    arguments |= {"mlp_ratio": config.intermediate_size / config.hidden_size}
    write_timm_config(folder, architecture, arguments, config.image_size, ["head", "head_dist"] if distilled else "head")
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    vision_expected(model, folder, [(config.image_size, config.image_size)])


def write_timm_config(folder, architecture, arguments, side, classifier):
    half, classes = [0.5, 0.5, 0.5], arguments["num_classes"]
    pretrained = {"input_size": [3, side, side], "fixed_input_size": True}
    pretrained |= {"interpolation": "bicubic", "crop_pct": 0.9, "crop_mode": "center", "mean": half, "std": half}
    pretrained |= {"num_classes": classes, "first_conv": "patch_embed.proj", "classifier": classifier}
    written = {"architecture": architecture, "num_classes": classes, "num_features": arguments["embed_dim"]}
    written |= {"global_pool": "token", "model_args": arguments, "pretrained_cfg": pretrained}
    common.write_json(folder / "config.json", written)


@torch.no_grad()
def run_timm(model, pixels):
    """What common.run_model gives, of timm's own model: hidden states and attention weights by hooks on its blocks."""
    result = {}

    def note(index, block, inputs, output):
        x = inputs[0]
        result[f"hidden.{index}"], result[f"hidden.{index + 1}"] = x, output
        heads = block.attn.num_heads
        qkv = block.attn.qkv(block.norm1(x)).reshape(*x.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
        result[f"attention.{index}"] = (qkv[0] * block.attn.scale @ qkv[1].transpose(-2, -1)).softmax(-1)

    for index, block in enumerate(model.blocks):
        block.register_forward_hook(functools.partial(note, index))
    result["logits"] = model(pixels)
    return result


def make_timm_own(name, architecture):
    """A model that transformers does not have: LayerScale, and positions of the patches alone."""
    folder, side = MODELS / name, 12
    arguments = {"num_classes": 5, "img_size": side, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 2}
    model = common.randomise(timm.create_model(architecture, **arguments), name).half().float().eval()
    common.write_tensors(folder / "model.safetensors", {k: v.half() for k, v in model.state_dict().items()})
    write_timm_config(folder, architecture, arguments, side, "head")
    pixels = common.random_pixels(f"{name}-{side}x{side}", side, side)
    common.write_tensors(folder / "expected.safetensors", {"pixels": pixels, **run_timm(model, pixels)})


def write_vocabulary(folder):
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"!,.-?'", *letters]
    tokens = list(dict.fromkeys(tokens + ["##" + letter for letter in letters] + PIECES))
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    common.write_json(folder / "tokenizer_config.json", {"do_lower_case": True, "model_max_length": 24})
    return len(tokens)


def bert_expected(model, folder, names):
    tokenizer = BertTokenizer.from_pretrained(folder)
    for index, name in enumerate(names):
        text, pair = TEXTS[name]
        inputs = dict(tokenizer(text, pair, padding=True, return_tensors="pt", return_token_type_ids=True))
        result = common.run_model(model, **inputs)
        last = result[f"hidden.{model.config.num_hidden_layers}"]
        result["mean_pooled"] = common.mean_pooled(last, inputs["attention_mask"])
        metadata = {"input": json.dumps({"text": text, "pair": pair})}
        file = "expected.safetensors" if index == 0 else f"expected-{name}.safetensors"
        common.write_tensors(folder / file, {**inputs, **result}, metadata)


def make_bert(name, model_class, names, dtype, **extra):
    folder = MODELS / name
    folder.mkdir(parents=True, exist_ok=True)
    size = write_vocabulary(folder)
    config = BertConfig(vocab_size=size, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                        intermediate_size=48, max_position_embeddings=24, **extra)
    common.save_checkpoint(common.randomise(model_class(config), name), folder, dtype)
    bert_expected(common.load(model_class, folder), folder, names)


def make_gamma_beta():
    """The bert checkpoint as TensorFlow conversions have it: gamma, beta, no prefix, a position_ids buffer."""
    source, folder = MODELS / "bert", MODELS / "bert-gamma-beta"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "vocab.txt", "tokenizer_config.json", "expected.safetensors"):
        shutil.copyfile(source / name, folder / name)
    tensors = {"embeddings.position_ids": torch.arange(24)[None]}
    for key, value in common.read_tensors(source / "model.safetensors").items():
        key = key.removeprefix("bert.")
        key = key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        tensors[key] = value
    common.write_tensors(folder / "model.safetensors", tensors)


def main():
    if MODELS.exists():
        shutil.rmtree(MODELS)
    half, small = torch.float16, {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    small |= {"intermediate_size": 48, "image_size": 12, "patch_size": 4}
    centre = processor("DeiTImageProcessor", {"height": 14, "width": 14}, 12)
    deit = DeiTConfig(**small, qkv_bias=False, **labels("cat", "dog", "bird", "fish", "newt"))
    make_vision("deit", deit, DeiTForImageClassification, centre, [(12, 12), (8, 20)], torch.float32)
    teacher = DeiTConfig(**small, **labels("cat", "dog", "bird", "fish", "newt", "frog"))
    make_vision("deit-distilled", teacher, DeiTForImageClassificationWithTeacher, centre,
                [(12, 12), (16, 8)], half)
    exact = processor("ViTImageProcessor", {"height": 12, "width": 12}, None, [0.5] * 3, [0.5] * 3, 2)
    vit = ViTConfig(**small | {"num_attention_heads": 2}, num_labels=7)
    vit = make_vision("vit", vit, ViTForImageClassification, exact, [(12, 12)], half, embedding_scale=1 / 256)
    vision_expected(vit, MODELS / "vit-interpolated", [(16, 12), (36, 4)])
    dino = Dinov2Config(hidden_size=24, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=2, image_size=70,
                        patch_size=14, layerscale_value=1.0, **labels("cat", "dog", "bird", "fish"))
    shortest = processor("BitImageProcessor", {"shortest_edge": 36}, 28) | {"do_convert_rgb": True}
    make_vision("dinov2", dino, Dinov2ForImageClassification, shortest, [(28, 28), (28, 42)], half, False)
    giant = Dinov2Config(hidden_size=24, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=2, image_size=28,
                         patch_size=14, layerscale_value=1.0, use_swiglu_ffn=True, **labels("cat", "dog", "bird"))
    make_vision("dinov2-swiglu", giant, Dinov2ForImageClassification, shortest, [(28, 28)], half, False)
    make_timm("timm-vit", "vit", "vit_tiny_patch16_224", False)
    make_timm("timm-deit-distilled", "deit-distilled", "deit_tiny_distilled_patch16_224", True)
    make_timm_own("timm-deit3", "deit3_small_patch16_224")
    make_bert("bert", BertForSequenceClassification, list(TEXTS), half, **labels("no", "maybe", "yes"))
    make_bert("bert-mlm", BertForMaskedLM, ["sentence"], torch.bfloat16)
    make_gamma_beta()


if __name__ == "__main__":
    main()
