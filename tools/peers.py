#!/usr/bin/env python3
"""What tools/compare measures beside hydrascope, in a process of its own: so that PyTorch can run under another memory
allocator (LD_PRELOAD).

Its argument is a JSON object: {"peer": NAME, "settings": {…}, "threads": t} with "seconds", or "runs" and "warm_ups".
It prints "ready" and then, for each line of its input, the milliseconds of each run as JSON, and bytes: its peak resident
memory, and that before there was a model.
"""
import importlib
import json
import re
import sys
import time
from pathlib import Path


def once(run):
    """Seconds of one run on the CPU."""
    start = time.perf_counter()
    kept = run()  # freed after the clock is read, as the program's output is
    seconds = time.perf_counter() - start
    del kept
    return seconds


def once_on_gpu(run):
    """Seconds of one run, as the GPU has them."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    kept = run()
    end.record()
    del kept
    end.synchronize()
    return 1e-3 * start.elapsed_time(end)


def timed(run, once, request):
    """Seconds of repeated runs after a warm-up: as many as asked for, or as `bench kernels` has them."""
    if "runs" in request:
        for _ in range(request["warm_ups"]):
            run()
        return [once(run) for _ in range(request["runs"])]
    once(run)  # may compile
    warm_up, seconds, times = 0, request["seconds"], []
    while warm_up < min(0.2, seconds):
        warm_up += once(run)
    while len(times) < 30 and (sum(times) < seconds or len(times) < (3 if sum(times) > 2 * seconds else 5)):
        times.append(once(run))
    return times


# Kernels.

HEADS, WIDTH = 12, 64


def random_like(device, *sizes):
    x = torch.randn(*sizes)
    return x if device == "cpu" else x.to(device, torch.bfloat16)


def appendix_c(q, k, v):
    """The Hydra paper's own code."""
    q = q / q.norm(dim=-1, keepdim=True)
    k = k / k.norm(dim=-1, keepdim=True)
    return q * (k * v).sum(dim=-2, keepdim=True)


def hydra(settings):
    formulation = torch.compile(appendix_c) if settings.get("compiled") else appendix_c
    q, k, v = (random_like(settings["device"], 1, settings["tokens"], HEADS * WIDTH) for _ in range(3))
    return lambda: formulation(q, k, v)


def hedgehog_maps(settings):
    return [random_like(settings["device"], HEADS, WIDTH, WIDTH) / WIDTH ** 0.5 for _ in range(2)]


def features(x, weight):
    mapped = x @ weight
    return torch.exp(torch.cat([mapped, -mapped], dim=-1))


def linear_attention(q, k, v, of_queries, of_keys):
    fq, fk = features(q, of_queries), features(k, of_keys)
    return (fq @ (fk.transpose(-2, -1) @ v)) / (fq @ fk.sum(-2).unsqueeze(-1))


def heads_of(settings):
    return (0.1 * random_like(settings["device"], 1, HEADS, settings["tokens"], WIDTH) for _ in range(3))


def hedgehog(settings):
    formulation = torch.compile(linear_attention) if settings.get("compiled") else linear_attention
    maps = hedgehog_maps(settings)
    q, k, v = heads_of(settings)
    return lambda: formulation(q, k, v, *maps)


def sdpa(settings):
    from contextlib import nullcontext

    from torch.nn.attention import SDPBackend, sdpa_kernel
    q, k, v = heads_of(settings)

    def attention():
        with nullcontext() if settings["device"] == "cpu" else sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return attention


def flash_linear_attention(settings):
    """Of the same features; it knows only the causal form."""
    from fla.ops.linear_attn import chunk_linear_attn
    maps = hedgehog_maps(settings)
    q, k, v = heads_of(settings)
    values = v.transpose(1, 2).contiguous()  # (B,N,H,d), as it wants them

    def attention():
        fq, fk = (features(x, weight).transpose(1, 2).contiguous() for x, weight in ((q, maps[0]), (k, maps[1])))
        return chunk_linear_attn(fq, fk, values, scale=1.0, normalize=True)

    return attention


# Models, of random weights.

def timm(settings):
    import timm as library
    model = library.create_model("deit_base_patch16_224", pretrained=False).eval()
    pixels = torch.randn(settings["batch"], 3, 224, 224)
    return lambda: model(pixels)


def onnx_runtime(settings):
    import onnxruntime
    import numpy
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings["threads"]
    session = onnxruntime.InferenceSession(settings["network"], options, providers=["CPUExecutionProvider"])
    pixels = numpy.random.default_rng(0).standard_normal((settings["batch"], 3, 224, 224), numpy.float32)
    return lambda: session.run(None, {"pixels": pixels})


def transformers(settings):
    from transformers import BertConfig, BertModel
    model = BertModel(BertConfig()).eval()
    ids = torch.randint(5, model.config.vocab_size, (settings["batch"], settings["tokens"]))
    return lambda: model(input_ids=ids)


def decoder(settings):
    """Reading a context, or the median token of those that are written after it."""
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained(settings["model"], dtype=getattr(torch, settings["dtype"]),
                                                 attn_implementation=settings["attention"])
    ids = torch.randint(0, model.config.vocab_size, (1, settings["context"]))

    def read():
        return model(ids, use_cache=True, logits_to_keep=1)

    if settings["part"] == "reading":
        return read
    output = read()

    def write():  # each token lengthens the cache by one
        nonlocal output
        output = model(output.logits[:, -1:].argmax(-1), past_key_values=output.past_key_values, use_cache=True)

    return write


PEERS = {function.__name__: function for function in
         (hydra, hedgehog, sdpa, flash_linear_attention, timm, onnx_runtime, transformers, decoder)}


LIBRARIES = {"timm": "timm", "onnx_runtime": "onnxruntime", "transformers": "transformers.models.bert.modeling_bert"}


def resident_bytes(field):
    """Of this process: VmRSS now, VmHWM at most."""
    return 1024 * int(re.search(rf"^{field}:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.M).group(1))


def main():
    request = json.loads(sys.argv[1])
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    if request["peer"] != "onnx_runtime":  # whose memory it would be, too
        global torch
        torch = importlib.import_module("torch")
        torch.set_num_threads(request["threads"])
        torch.set_grad_enabled(False)
    on_device = once if request["settings"]["device"] == "cpu" else once_on_gpu
    if request["peer"] in LIBRARIES:
        importlib.import_module(LIBRARIES[request["peer"]])
    libraries = resident_bytes("VmHWM")
    run = PEERS[request["peer"]]({**request["settings"], "threads": request["threads"]})
    print("ready", file=answers, flush=True)
    for _ in sys.stdin:
        milliseconds = [1e3 * seconds for seconds in timed(run, on_device, request)]
        print(json.dumps({"ms": milliseconds, "libraries_bytes": libraries, "peak_bytes": resident_bytes("VmHWM")}),
              file=answers, flush=True)


if __name__ == "__main__":
    main()
