#!/usr/bin/env python3
"""`hydrascope attend K` for every kernel but `phi` against the formulas of the papers in double precision.

    python3 tools/golden/compare_attend.py build/hydrascope [--quick] [--kernels a,b] [--write FILE]

Needs torch, numpy and safetensors. Error = max |difference| / max |reference| of a tensor; the reference gets the inputs
as rounded to the tested type. Limits: float32 2e-5 (×30: 2e-3, ×100: 2e-2), bfloat16 2e-2.
"""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile

import torch
from safetensors.torch import load_file, save_file

import common

LENGTHS = [1, 2, 63, 64, 65, 197, 198, 577, 4097]
WIDTHS = [1, 8, 32, 64, 80, 128]
GRIDS = {65: (8, 8), 197: (14, 14), 198: (14, 14), 577: (24, 24), 4097: (64, 64)}
LIMITS = {("float32", 1.0): 2e-5, ("float32", 1e-4): 2e-5, ("float32", 30.0): 2e-3, ("float32", 100.0): 2e-2,
          ("bfloat16", 1.0): 2e-2}
HYBRIDS = {"based": 16, "hedgehog-window": 64}  # tokens in which softmax is kept
OWN = "phi"  # its definition is the user's


def cut(x, heads):
    batch, _, tokens, _ = x.shape
    return x.transpose(1, 2).reshape(batch, tokens, heads, -1).transpose(1, 2)


def normalised(log_products, visible):
    seen = log_products.masked_fill(~visible, -math.inf)
    total = torch.logsumexp(seen, -1, keepdim=True)
    return torch.where(torch.isinf(total) | ~visible, 0.0, (seen - total).exp())


def log_products(log_query, log_key):
    """log φ(q)·φ(k) of all queries and keys."""
    rows = [torch.logsumexp(log_query[:, :, c : c + 1] + log_key, -1) for c in range(log_query.shape[2])]
    return torch.stack(rows, 2)


def projected(x, side, given):
    return torch.einsum("bhnd,hde->bhne", x, given[side + ".weight"]) + given[side + ".bias"].unsqueeze(1)


def log_features(name, x, side, given, mask):
    relu = lambda y: y.clamp_min(0).log()
    pair = lambda y: torch.cat([y, -y], -1)
    if name == "elu":
        return torch.where(x > 0, torch.log(x.clamp_min(0) + 1), x)
    if name == "relu":
        return relu(x)
    if name == "relu-squared":
        return 2 * relu(x)
    if name in ("exp-t1", "exp-t2"):
        return x * int(name[-1])
    if name == "hedgehog-untrained":
        return pair(x)
    if name == "performer":
        scaled = x / x.shape[3] ** 0.25
        return scaled @ given["omega"].T - scaled.square().sum(-1, keepdim=True) / 2
    if name == "cosformer":
        rank = mask.double().cumsum(1)
        angle = (math.pi * rank / (2 * mask.sum(1, keepdim=True).clamp_min(1)))[:, None, :, None]
        return torch.cat([relu(x) + angle.cos().clamp_min(0).log(), relu(x) + angle.sin().log()], -1)
    y = projected(x, side, given)
    if name in ("t2r", "t2r-hh"):
        return relu(y)
    if name == "hedgehog":
        return pair(y)
    if name in ("hedgehog-exp", "hedgehog-window"):
        return y
    return torch.cat([torch.log_softmax(y, -1), torch.log_softmax(-y, -1)], -1)  # hedgehog-softmax


def window(length, w):
    """Which of `length` places each place sees."""
    width = min(w, length)
    first = (torch.arange(length) - w // 2).clamp(0, length - width)
    place = torch.arange(length)
    return (place >= first[:, None]) & (place < first[:, None] + width)


def near(mask, grid, tokens, w=64):
    """Which keys are in a query's window: 14 x 14 patches of a grid, w of a text's real tokens."""
    if grid:
        rows, columns = grid
        prefix = tokens - rows * columns
        seen = torch.ones(tokens, tokens, dtype=torch.bool)
        seen[prefix:, prefix:] = (window(rows, 14)[:, None, :, None] & window(columns, 14)[None, :, None, :]).reshape(
            rows * columns, rows * columns)
        return seen
    result = torch.zeros(mask.shape[0], 1, tokens, tokens, dtype=torch.bool)
    for b, row in enumerate(mask):
        places = row.nonzero().squeeze(1)
        if len(places):
            result[b, 0, places[:, None], places[None, :]] = window(len(places), w)
    return result


def hydra(name, tensors, mask, given):
    q, k, v = (cut(tensors[n], 1).squeeze(1) for n in "qkv")
    real = mask.unsqueeze(2)
    count = mask.sum(1).clamp_min(1).double()[:, None, None]
    unit = lambda x, order: x / x.norm(order, dim=2, keepdim=True).clamp_min(1e-12)
    gate = {"cosine": lambda x: unit(x, 2), "tanh": torch.tanh, "sigmoid": torch.sigmoid, "l1": lambda x: unit(x, 1),
            "mean": lambda x: x / count.sqrt()}
    softmax = lambda x: torch.nan_to_num(torch.softmax(x.masked_fill(~real, -math.inf), 1))
    if name == "poly-nl":
        query, key = gate["mean"](torch.where(real, tensors["x"], 0.0)), gate["mean"](k)
    else:
        kind = name.split("-")[1]
        query = gate[kind](q)
        key = softmax(k) if name.endswith("softmax") else gate["cosine"](k) if "l2" in name else gate[kind](k)
    query, key = torch.where(real, query, 0.0), torch.where(real, key, 0.0)
    out = query * (key * v).sum(1, keepdim=True)
    if name.endswith("-ln"):
        out = torch.nn.functional.layer_norm(out, out.shape[2:], given["norm.weight"], given["norm.bias"], 1e-5)
        out = torch.where(real, out, 0.0)
    heads = tensors["q"].shape[1]
    split = lambda x: x.unflatten(2, (heads, -1)).transpose(1, 2)
    return split(out), split(query) @ split(key).transpose(2, 3)


def reference(name, tensors, mask, given, grid):
    keep = mask[:, None, :, None]
    tensors = {n: torch.where(keep, x, 0.0) if x.dim() == 4 else x for n, x in tensors.items()}
    q, k, v = tensors["q"], tensors["k"], tensors["v"]
    if name.startswith("hydra") or name == "poly-nl":
        return hydra(name, tensors, mask, given)
    visible = mask[:, None, None, :] & mask[:, None, :, None]
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    if name == "linear-cosine":
        unit = lambda x: x / x.norm(dim=3, keepdim=True).clamp_min(1e-12)
        weights = unit(q) @ unit(k).transpose(2, 3) * visible
    elif name in ("softmax", "sdpa", "flash"):
        weights = normalised(scores, visible)
    elif name == "local-window":
        weights = normalised(scores, visible & near(mask, grid, q.shape[2]))
    else:
        if name in ("taylor", "based"):
            logarithms = (1 + scores + scores**2 / 2).log()
        else:
            logarithms = log_products(*(log_features(name, x, side, given, mask)
                                        for x, side in ((q, "query_map"), (k, "key_map"))))
        if name in HYBRIDS:
            logarithms = torch.where(near(mask, None, q.shape[2], HYBRIDS[name]), scores, logarithms)
        weights = normalised(logarithms, visible)
    return weights @ v, weights


def parameters(name, heads, width):
    if name in ("t2r", "t2r-hh", "hedgehog", "hedgehog-exp", "hedgehog-softmax", "hedgehog-window"):
        bound = math.sqrt(6 / width) if name.startswith("t2r") else 0
        start = (lambda: (torch.rand(heads, width, width) * 2 - 1) * bound) if bound else (
            lambda: torch.eye(width) + 0.3 * torch.randn(heads, width, width) / math.sqrt(width))
        return {f"{side}.{part}": start() if part == "weight" else 0.3 * torch.randn(heads, width)
                for side in ("query_map", "key_map") for part in ("weight", "bias")}
    if name.endswith("-ln"):
        return {"norm.weight": 1 + 0.3 * torch.randn(heads * width), "norm.bias": 0.3 * torch.randn(heads * width)}
    return {}


class Comparison:
    def __init__(self, program):
        self.program, self.folder = program, pathlib.Path(tempfile.mkdtemp())
        self.worst, self.failed, self.cases = {}, 0, 0

    def error(self, actual, expected):
        return ((actual.double() - expected).abs().max() / expected.abs().max().clamp_min(1e-30)).item()

    def case(self, name, batch, heads, tokens, width, masked, dtype="float32", scale=1.0, grid=None):
        torch.manual_seed(tokens * 1000 + width)
        own = heads if tokens < 577 else 1
        tensors = {n: torch.randn(batch, own, tokens, width) for n in "qkv"}
        tensors["q"] *= scale
        tensors["k"] *= scale
        tensors["x"] = torch.randn(batch, tokens, own * width) * scale
        mask = torch.ones(batch, tokens, dtype=torch.bool)
        if masked:
            mask = torch.rand(batch, tokens) > 0.3
            mask[-1] = batch == 1
            for n in "qkv":
                tensors[n][~mask[:, None, :, None].expand_as(tensors[n])] = math.nan
        given = parameters(name, own, width)
        file, result = self.folder / "in.safetensors", self.folder / "out.safetensors"
        save_file({**tensors, **given, **({"mask": mask.to(torch.uint8)} if masked else {})}, str(file))
        rows = sorted({0, tokens // 2, tokens - 1})
        command = [self.program, "attend", name, "--input", file, "--output", result, "--dtype", dtype, "--weights",
                   "--rows", ",".join(map(str, rows)), "--json"]
        if grid:
            command += ["--grid", f"{grid[0]}x{grid[1]}"]
        answer = subprocess.run(command, capture_output=True, text=True)
        title = f"{name} B={batch} H={own} N={tokens} d={width} {dtype} ×{scale:g}{' masked' if masked else ''}"
        if answer.returncode:
            self.failed += 1
            print(f"FAILED {title}: {answer.stderr.strip()}")
            return
        results = load_file(str(result))
        exact = {n: (x.to(getattr(torch, dtype)) if n in "qkvx" else x).double() for n, x in {**tensors, **given}.items()}
        exact["omega"] = results.get("omega", torch.zeros(1)).double()
        out, weights = reference(name, exact, mask, exact, grid)
        finite = bool(results["output"].isfinite().all() and results["weights"].isfinite().all())
        errors = self.error(results["output"], out), self.error(results["weights"], weights[:, :, rows])
        limit = LIMITS[dtype, scale]
        if dtype == "bfloat16":
            limit = max(limit, 2e-5)
        key = dtype, scale
        self.cases += 1
        self.worst[key] = max(self.worst.get(key, (0, "")), (max(errors), title))
        if not finite or max(errors) > limit:
            self.failed += 1
            print(f"FAILED {title}: output {errors[0]:.2e}, weights {errors[1]:.2e}, limit {limit:g}, finite {finite}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kernels", default="")
    parser.add_argument("--quick", action="store_true", help="half of the shapes")
    common.add_write(parser)
    options = parser.parse_args()
    listed = json.loads(subprocess.run([options.program, "kernels", "--json"], capture_output=True, check=True).stdout)
    names = [n for n in options.kernels.split(",") if n] or [kernel["name"] for kernel in listed if kernel["name"] != OWN]
    comparison = Comparison(options.program)
    for name in names:
        for tokens in LENGTHS[:: 2 if options.quick else 1]:
            wide = 64 if tokens < 4097 else 8
            comparison.case(name, 2, 3, tokens, wide, masked=tokens % 2 == 1, grid=GRIDS.get(tokens))
        for width in WIDTHS:
            comparison.case(name, 2, 3, 65, width, masked=True)
            comparison.case(name, 1, 2, 197, width, masked=False, dtype="bfloat16", grid=(14, 14))
        for scale in (1e-4, 30.0, 100.0):
            for width in (1, 64, 128):
                comparison.case(name, 1, 2, 197, width, masked=False, scale=scale)
        print(f"{name}: done", flush=True)
    for (dtype, scale), (error, title) in comparison.worst.items():
        print(f"{dtype} ×{scale:g}: worst {error:.2e} ({title})")
    print(f"{comparison.cases} cases, {comparison.failed} failed")
    if not comparison.failed:
        common.write_found(options, [{"dtype": dtype, "scale": scale, "error": error, "case": title}
                                     for (dtype, scale), (error, title) in comparison.worst.items()],
                           cases=comparison.cases)
    raise SystemExit(comparison.failed > 0)


main()
