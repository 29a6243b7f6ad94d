"""Renames a Hugging Face ViT or distilled DeiT state dict to timm's names, with the fused qkv projection."""

import re

import torch

OUTER = {
    "embeddings.cls_token": "cls_token",
    "embeddings.distillation_token": "dist_token",
    "embeddings.position_embeddings": "pos_embed",
    "embeddings.patch_embeddings.projection": "patch_embed.proj",
    "layernorm": "norm",
    "classifier": "head",
    "cls_classifier": "head",
    "distillation_classifier": "head_dist",
}
INNER = {
    "attention.output.dense": "attn.proj",
    "layernorm_before": "norm1",
    "layernorm_after": "norm2",
    "intermediate.dense": "mlp.fc1",
    "output.dense": "mlp.fc2",
}


def to_timm(tensors):
    result, fused = {}, {}
    for key, value in tensors.items():
        key = re.sub(r"^(vit|deit)\.", "", key)
        stem, _, leaf = key.rpartition(".")
        block = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)", stem)
        if key in OUTER:
            result[OUTER[key]] = value
        elif not block:
            result[f"{OUTER[stem]}.{leaf}"] = value
        elif block[2].startswith("attention.attention."):
            part = block[2].rpartition(".")[2]
            fused.setdefault(f"blocks.{block[1]}.attn.qkv.{leaf}", {})[part] = value
        else:
            result[f"blocks.{block[1]}.{INNER[block[2]]}.{leaf}"] = value
    for key, parts in fused.items():
        result[key] = torch.cat([parts["query"], parts["key"], parts["value"]])
    return result
