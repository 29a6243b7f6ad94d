"""The results in README.md, as a function of raw files (tools/results)."""
import statistics

from compare_tables import (GPU_KERNELS, HEDGEHOG, HYDRA, KERNELS, KERNELS_ZEN4, KERNELS_ZEN5, over_all, processor, range_text,
                            rows_of)
from experiment import paired_difference, spread_text
from table_registry import by, percent, points, raw, table


def kept_of_classifiers():
    """Matthews correlation on CoLA, and what Hedgehog loses on MRPC."""
    cola = {name: spread_text(row["measures"]["cola"]["matthews"]) for name, row in raw("glue-conversion")["rows"].items()}
    mrpc = raw("glue-mrpc")["rows"]
    loss = paired_difference(*(mrpc[name]["measures"]["mrpc"]["matthews"]["values"] for name in ("softmax", "hedgehog")))
    return (f"CoLA (± standard deviation): Hedgehog {cola['hedgehog']}, T2R {cola['t2r']}; softmax {cola['softmax']}. On MRPC "
            f"Hedgehog loses {points(loss)} points (± standard error)")


def vision_mean(name, row):
    return percent(statistics.fmean(raw(f"vision-{name}")["rows"][row]["after"]))


def top1(name):
    return percent(raw(f"image-{name}")["top1"])


def beside_hedgehog(names, tokens, label):
    """A row of tools/compare in each run."""
    return [rows_of([name])[HEDGEHOG, tokens, 1, label] for name in names]


def listed(words):
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def speed_of_hedgehog():
    by_kind = (KERNELS, KERNELS_ZEN4, KERNELS_ZEN5)
    runs = [name for names in by_kind for name in names]
    fused = ", ".join(f"on an {processor(names[0])} " + listed([range_text(row) for row in beside_hedgehog(
        names, 4096, "softmax: scaled_dot_product_attention in PyTorch, jemalloc")]) for names in by_kind)

    def pooled(tokens, label):
        return over_all(beside_hedgehog(runs, tokens, label), False)

    eager, compiled = (pooled(32768, f"the same in PyTorch, {way}, jemalloc") for way in ("eager", "torch.compile"))
    return (f"times as fast as PyTorch's fused softmax attention at 4,096 tokens: {fused}. Over all six runs, "
            f"{pooled(4096, 'flash: own')} times as fast as our own `flash`; at 32,768 tokens {eager} times as fast as the same "
            f"formula in eager PyTorch, {compiled} times as fast as compiled. All with the same memory allocator")


def beside_sdpa(rows, case, tokens):
    return range_text(rows[case, tokens, 1, "sdpa: PyTorch's, called here"])


def speed_on_a_gpu():
    rows = rows_of(GPU_KERNELS)
    return (f"Hedgehog at 32,768 tokens {beside_sdpa(rows, HEDGEHOG, 32768)} times as fast as cuDNN's fused softmax attention, "
            f"at 4,096 {beside_sdpa(rows, HEDGEHOG, 4096)}, at 1,024 {beside_sdpa(rows, HEDGEHOG, 1024)}; Hydra at 4,096 "
            f"{beside_sdpa(rows, HYDRA, 4096)}")


@table("readme")
def results():
    kl = {kernel: f"{by(raw('kl-cola'), 'kernel', kernel)['kl']:.3f}" for kernel in ("hedgehog", "elu")}
    yield ["question", "answer"]
    yield ["How close do Hedgehog's trained maps come to softmax (`minilm`, CoLA)?",
           f"KL {kl['hedgehog']} nats; ELU {kl['elu']}"]
    yield ["What does a fine-tuned `minilm` keep when every layer is converted (Matthews, three seeds)?",
           kept_of_classifiers()]
    yield ["What do two Hydra layers cost `vit-small` (Tiny ImageNet, top-1)?",
           f"one pass over 30 pictures a class, trained alike, three seeds: {vision_mean('kernels', 'back:2=hydra-cosine')} "
           f"against {vision_mean('kernels', 'back:2=softmax')} with softmax; five over 150: "
           f"{top1('hydra-cosine')} (best epoch by these pictures, no control) against {top1('softmax')} "
           "before, within the error"]
    yield [f"Which layers can be Hydra (four of twelve, trained alike; softmax {vision_mean('places', 'softmax')})?",
           f"the first: {vision_mean('places', 'front:4=hydra-cosine')}; four spread evenly: "
           f"{vision_mean('places', 'interleave:4=hydra-cosine')}; the last: {vision_mean('places', 'back:4=hydra-cosine')}"]
    yield ["What does Hedgehog in all twelve layers cost `vit-small`?",
           f"{top1('hedgehog')} (best state by these pictures, no control); {top1('softmax')} before"]
    yield ["How fast is Hedgehog (attention alone, 12 heads of 64, float32, two cores; medians of five turns, some disturbed "
           "by other programs, with their range)?", speed_of_hedgehog()]
    yield ["And on an H200 (bfloat16, five turns; [CUDA](docs/measurements/cuda.md))?", speed_on_a_gpu()]
    yield ["How well do logits and hidden states agree with Hugging Face transformers?",
           f"within {max(row['error'] for row in raw('agreement-run')['rows']):.1e}".replace("e-0", "e-")
           + " of the largest value"]
