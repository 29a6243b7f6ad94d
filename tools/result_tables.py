"""The tables of docs/ about kernels, texts and decoders, as functions of raw files (tools/results)."""
import re
import statistics

from experiment import paired_difference, spread, spread_text
from table_registry import HEDGEHOG, by, numbers_beside, percent, points, raw, table, with_error

# Tables: the head, then the rows; a head that ends in ":" is aligned to the right.

KL_ROWS = ["softmax", "elu", "relu", "relu-squared", "t2r", "t2r-hh", "performer", "cosformer", "exp-t1", "exp-t2",
           "taylor", "hedgehog", "hedgehog-softmax", "hedgehog-untrained"]


def kl_text(one):
    """A KL with its standard error over the items, none for a single item."""
    error = one["kl_standard_error"]
    return f"{one['kl']:.3f}" + ("" if error is None else f" ± {error:.3f}")


def kl_of_performer():
    """KL on CoLA by seed; its mean over the seeds and its standard error."""
    found = [by(raw("kl-cola"), "kernel", "performer")["kl"],
             *(raw(f"kl-performer-seed{seed}")[0]["kl"] for seed in (1, 2, 3))]
    return {"by seed": found, "mean": statistics.fmean(found), "standard error": statistics.stdev(found) / len(found) ** 0.5,
            "64 features": raw("kl-performer-64")[0]["kl"]}


@table("kl", derived=kl_of_performer)
def kl_of_kernels():
    sets = {name: raw(f"kl-{name.lower().replace('-', '')}") for name in ["CoLA", "MRPC", "SST-2"]}
    yield ["kernel", *(f"KL, {name}:" for name in sets), "entropy, CoLA:", "ρ, CoLA:"]
    for kernel in KL_ROWS:
        of = [by(one, "kernel", kernel) for one in sets.values()]
        name = f"`{kernel}`" + (" (untrained)" if of[0]["untrained"] else "")
        yield [name, *map(kl_text, of), f"{of[0]['entropy']:.3f}", f"{of[0]['spearman']:.3f}"]


@table("one-click")
def training_by_one_click():
    yield ["model", "data", "KL from softmax before, nats:", "after, each head's best state by the same items:"]
    for model, data in [("minilm", "300 sentences"), ("vit-small", "5 pictures, 16 copies of each")]:
        found = raw(f"one-click-{model}")
        yield [f"`{model}`", data, f"{found['kl_before']:.3f}", f"{found['kl']:.3f}"]


@table("example")
def example_picture():
    yield ["schedule", "predictions"]
    for name, label in [("softmax", "softmax"), ("hydra-back2", "`back:2=hydra-cosine`"),
                        ("hydra-back4", "`back:4=hydra-cosine`"), ("hedgehog", "`hedgehog` in all layers")]:
        likeliest = raw(f"example-{name}")["predictions"][:3]
        yield [label, ", ".join(f"{one['label']} {percent(one['probability'], 0)}" for one in likeliest)]


@table("kl-all")
def kl_of_all_sentences():
    """Without a limit."""
    sets = ["cola", "mrpc", "sst2"]
    yield ["kernel", "CoLA:", "MRPC:", "SST-2:"]
    for kernel, label, which in [("hedgehog", "`hedgehog`, bundled maps", "all"),
                                 ("hedgehog", "`hedgehog`, maps distilled on CoLA alone", "all-cola"),
                                 ("t2r-hh", "`t2r-hh`, distilled on CoLA, each head at its best", "all"),
                                 ("hedgehog-untrained", "`hedgehog-untrained`", "all"), ("elu", "`elu`", "all")]:
        yield [label, *(kl_text(by(raw(f"kl-{name}-{which}"), "kernel", kernel)) for name in sets)]


@table("carry")
def how_far_maps_carry():
    lengths = [16, 64, 256, 512]
    yield ["maps distilled on", "CoLA sentences:", "16 tokens:", *(f"{length}:" for length in lengths[1:])]
    for maps, label in [("bundled", "CoLA and WikiText-2 in pieces of 16 to 256 tokens (bundled)"),
                        ("cola", "CoLA (`minilm-hedgehog-cola`)"),
                        ("wikitext2", "WikiText-2 in pieces of 512 tokens (`minilm-hedgehog-wikitext2`)")]:
        yield [label, kl_text(raw(f"carry-cola-{maps}")[0]),
               *(kl_text(by(raw(f"carry-text-{maps}"), "length", length)) for length in lengths)]


@table("carry-long")
def sentences_in_a_row():
    lengths = [256, 1024, 4096]
    yield ["maps", "sentences", *(f"{length:,}:" for length in lengths)]
    for how, label in [("long", "queries and keys of each joined"), ("joined", "fed as one text")]:
        for maps, name in [("bundled", "bundled"), ("cola", "CoLA")]:
            yield [name, label, *(kl_text(by(raw(f"carry-{how}-{maps}"), "length", length)) for length in lengths)]


def perplexity(value):
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def ratios_of_converted():
    rows = raw("decoder-conversion")["rows"]
    return {f"{kernel}, {stage}, {window}, over softmax {control}": row[stage][window] / rows["softmax"][control][window]
            for kernel, row in rows.items() for stage, control in [("distilled", "before"), ("tuned", "tuned")]
            for window in row.get(stage, {})}


def neighbours_of_fixed_maps():
    """How much larger a fixed map's loss with LoRA is than that of the one before it, paired by window, in nats."""
    rows, order = raw("decoder-conversion")["rows"], ["performer", "cosformer", "exp-t2", "relu", "elu", "t2r"]
    losses = {(kernel, window): rows[kernel]["loss"]["tuned"][window]["losses"]
              for kernel in order for window in ("256", "1024")}
    return {f"{kernel} − {before}, {window}": paired_difference(losses[kernel, window], losses[before, window])
            for before, kernel in zip(order, order[1:]) for window in ("256", "1024")}


def numbers_of_converted():
    distilled = {kernel: row["distillation"] for kernel, row in raw("decoder-conversion")["rows"].items()
                 if "distillation" in row}
    return [ratios_of_converted(), neighbours_of_fixed_maps(), distilled]


@table("converted", derived=numbers_of_converted)
def converted_decoder():
    stages = [("before", "as it is"), ("distilled", "maps distilled"), ("tuned", "then LoRA")]
    yield ["kernel of all layers", *(f"{label}, {window}:" for _, label in stages for window in ["256", "1,024"]),
           "loss − softmax's, 256:"]
    rows = {name: row for name, row in raw("decoder-conversion")["rows"].items() if "tuned" in row}
    for name, row in sorted(rows.items(), key=lambda item: item[1]["tuned"]["256"]):
        kernel, comma, epochs = name.partition(", ")
        yield [f"`{kernel}`{comma}{epochs}", *(perplexity(row.get(stage, {}).get(window)) for stage, _ in stages
                                               for window in ["256", "1024"]), difference(row, "256")]


@numbers_beside("generate")
def shares_of_reading():
    """What part of a token's time reading the weights would take, without and with the state."""
    return [[one["share_of_bandwidth"], one["share_of_bandwidth_with_state"]]
            for name in ("generate-float32", "generate-bfloat16") for one in raw(name)]


def difference(row, window):
    """Of a row's mean loss to softmax's, window by window."""
    found = row.get("difference to softmax", {}).get(window)
    return with_error(found) if found else ""


def ratios_of_lora():
    """To softmax with the same LoRA; and how much more than with one epoch the loss differs from softmax's, in nats."""
    rows, values = raw("decoder-lora")["rows"], {}
    for name, row in rows.items():
        for window, ratio in row.get("times softmax", {}).items():
            values[f"{name}, {window}, times softmax"] = ratio
        first = next(one for one in rows.values() if (one["kernel"], one["seed"]) == (row["kernel"], row["seed"]))
        for window in row.get("difference to softmax", {}):
            values[f"{name}, {window}, more than after one epoch"] = paired_difference(
                *(gap_by_window(rows, one, window) for one in (row, first)))
    return values


def gap_by_window(rows, row, window):
    control = next(one for one in rows.values()
                   if (one["kernel"], one["epochs"], one["seed"]) == ("softmax", row["epochs"], row["seed"]))
    return [own - other for own, other in zip(*(one["loss"]["tuned"][window]["losses"] for one in (row, control)))]


@table("lora", derived=ratios_of_lora)
def longer_lora():
    yield ["LoRA", "kernel of all layers", "256:", "1,024:", "times softmax's, 256:", "loss − softmax's, 256:"]
    for name, row in sorted(raw("decoder-lora")["rows"].items(), key=lambda item: (item[1]["epochs"], item[1]["seed"])):
        epochs = f"{row['epochs']} epoch{'s' * (row['epochs'] > 1)}, seed {row['seed']}"
        times = f"{row['times softmax']['256']:.2f}" if "times softmax" in row else ""
        yield [epochs, f"`{row['kernel']}`", perplexity(row["tuned"]["256"]), perplexity(row["tuned"]["1024"]), times,
               difference(row, "256")]


@table("scratch")
def decoder_from_scratch():
    paper = HEDGEHOG["table 7, 125M from scratch on WikiText-103, perplexity"]
    yield ["kernel of all layers", "perplexity:", "mean loss − softmax's, nats:", "paper, 125M, WikiText-103:"]
    for kernel, row in raw("decoder-scratch")["rows"].items():
        yield [f"`{kernel}`", perplexity(row["test"]["256"]), difference(row, "256"), f"{paper[kernel]:.1f}"]


@table("arena")
def long_range_arena():
    paper = HEDGEHOG["table 6, LRA: ListOps, Text, Retrieval, Image, Pathfinder, average"]
    yield ["kernel of all layers", "ListOps, test:", "paper:", "Image, held out:", "paper:"]
    listops, image = raw("decoder-listops")["rows"], raw("decoder-image")["rows"]
    for kernel, row in listops.items():
        yield [f"`{kernel}`", f"{spread_text(row['test_accuracy'])} %", f"{paper[kernel][0]:.1f} %",
               f"{spread_text(image[kernel]['last_accuracy'])} %", f"{paper[kernel][3]:.1f} %"]
    # All kernels have the same data.
    constants = [next(row[name]["mean"] for row in rows.values() if row.get(name))
                 for rows, name in ((listops, "test_constant_answer"), (image, "constant_answer"))]
    yield ["always the commonest class", percent(constants[0]), "", percent(constants[1]), ""]


# ---- tools/glue ----

def glue_measures(file, task, measure):
    """The values over the seeds, by row."""
    return {name: row["measures"][task][measure]["values"] for name, row in raw(file)["rows"].items()}


def glue_differences(file, task, measure):
    """A row's measure − softmax's of the same seed."""
    values = glue_measures(file, task, measure)
    return {name: paired_difference(of, values["softmax"]) for name, of in values.items() if len(of) > 1}


def in_points(difference):
    return [100 * number for number in difference.values()]


def glue_beside(file, task, measure, pairs):
    """A row − another of the same seed, in points."""
    values = glue_measures(file, task, measure)
    return {f"{one} − {other}": in_points(paired_difference(values[one], values[other])) for one, other in pairs}


# Sentences and pairs of the sets that are reported.
REPORTED = {"cola": 1043, "mrpc": 1725, "sst2": 872}


def error_of_matthews(measures, positive, count):
    """Of each seed, the standard error of a Matthews correlation over samples of `count` items, of which the share
    `positive` is of the second class: the delta method for φ of a table of two by two (Bishop, Fienberg and Holland 1975,
    Discrete Multivariate Analysis, chapter 11). What the model calls the second class follows from accuracy and F1."""
    for accuracy, f1, phi in zip(*(measures[name]["values"] for name in ("accuracy", "f1", "matthews")), strict=True):
        right = f1 * (1 - accuracy) / (2 * (1 - f1))
        called = 2 * right / f1 - positive
        rows, columns = positive * (1 - positive), called * (1 - called)
        row, column = 2 * positive - 1, 2 * called - 1
        variance = (1 - phi**2 + phi * (1 + phi**2 / 2) * row * column / (rows * columns) ** 0.5
                    - 0.75 * phi**2 * (row**2 / rows + column**2 / columns))
        yield (variance / count) ** 0.5


def errors_of_reported(file, task, measure):
    """In points, the least and largest standard error that the choice of the reported items gives one model's measure."""
    rows = {name: row["measures"][task] for name, row in raw(file)["rows"].items()}
    positive = rows["always the commonest class"]["accuracy"]["mean"]  # of CoLA and MRPC the second class
    errors = [error for name, measures in rows.items() if not name.startswith("always")
              for error in (error_of_matthews(measures, positive, REPORTED[task]) if measure == "matthews" else
                            ((share * (1 - share) / REPORTED[task]) ** 0.5 for share in measures[measure]["values"]))]
    return {f"{task}: error of one model's {measure}": [100 * min(errors), 100 * max(errors)]}


def glue_order(rows, task, measure):
    """Best first, without the second constant answer: it equals the first in all three tasks."""
    names = (name for name in rows if name != "always the second class")
    return sorted(names, key=lambda name: -rows[name]["measures"][task][measure]["mean"])


def glue_cells(name, row, differences):
    """The difference to softmax, and what is recovered."""
    return ["" if name == "softmax" or name not in differences else points(differences[name]),
            f"{spread_text(row.get('recovered'), 0)} %" if row.get("recovered") else ""]


def glue_label(name):
    return name if " " in name else f"`{name}`"


def cola_numbers():
    accuracy = {name: row["measures"]["cola"]["accuracy"]["mean"] for name, row in raw("glue-conversion")["rows"].items()}
    return [glue_beside("glue-conversion", "cola", "matthews", [("t2r-hh", "t2r")]),
            errors_of_reported("glue-conversion", "cola", "matthews"),
            100 * (max(accuracy.values()) - accuracy["always the commonest class"])]


@table("glue-conversion", derived=cola_numbers)
def converted_cola():
    rows, differences = raw("glue-conversion")["rows"], glue_differences("glue-conversion", "cola", "matthews")
    paper = HEDGEHOG["table 8, CoLA, Matthews, BERT-base"]
    yield ["kernel of all layers", "Matthews:", "accuracy:", "Matthews − softmax's:", "recovered:", "paper:"]
    for name in glue_order(rows, "cola", "matthews"):
        measures = rows[name]["measures"]["cola"]
        yield [glue_label(name), spread_text(measures["matthews"]), spread_text(measures["accuracy"]),
               *glue_cells(name, rows[name], differences), str(paper.get(name, ""))]


def mrpc_numbers():
    """Among them, how far F1 is above that of the constant answer."""
    f1 = glue_measures("glue-mrpc", "mrpc", "f1")
    constant = f1["always the commonest class"] * 3
    above = {name: in_points(paired_difference(f1[name], constant)) for name in ("taylor", "hedgehog", "t2r-hh")}
    beside = [(name, "t2r") for name in ("t2r-hh", "relu", "t2r, 6 epochs at 1e-4")]
    return [glue_beside("glue-mrpc", "mrpc", "matthews", beside), errors_of_reported("glue-mrpc", "mrpc", "matthews"), above]


@table("glue-mrpc", derived=mrpc_numbers)
def converted_mrpc():
    rows, differences = raw("glue-mrpc")["rows"], glue_differences("glue-mrpc", "mrpc", "matthews")
    yield ["kernel of all layers", "Matthews:", "F1:", "accuracy:", "Matthews − softmax's:", "recovered:"]
    for name in glue_order(rows, "mrpc", "matthews"):
        measures = rows[name]["measures"]["mrpc"]
        yield [glue_label(name), *(spread_text(measures[one]) for one in ("matthews", "f1", "accuracy")),
               *glue_cells(name, rows[name], differences)]


@table("glue-sst2", derived=lambda: errors_of_reported("glue-sst2", "sst2", "accuracy"))
def converted_sst2():
    rows, differences = raw("glue-sst2")["rows"], glue_differences("glue-sst2", "sst2", "accuracy")
    yield ["kernel of all layers", "accuracy:", "accuracy − softmax's:", "recovered:"]
    for name in glue_order(rows, "sst2", "accuracy"):
        yield [glue_label(name), spread_text(rows[name]["measures"]["sst2"]["accuracy"]),
               *glue_cells(name, rows[name], differences)]


def beside_own_softmax(task, measure):
    """Performer − softmax of the same seed, and what of softmax's lead over the constant answer it keeps."""
    rows = raw("glue-performer")["rows"]
    constant = rows["always the commonest class"]["measures"][task][measure]["mean"]
    own, softmax = (rows[name]["measures"][task][measure]["values"] for name in ("performer", "softmax"))
    recovered = [(one - constant) / (other - constant) for one, other in zip(own, softmax, strict=True)]
    return paired_difference(own, softmax), spread(recovered)


@table("glue-performer")
def converted_with_performer():
    rows = raw("glue-performer")["rows"]
    yield ["task", "`softmax`:", "`performer`:", "`performer` − softmax's:", "recovered:"]
    for task, measure, label in [("mrpc", "matthews", "MRPC, Matthews"), ("sst2", "accuracy", "SST-2, accuracy")]:
        difference, recovered = beside_own_softmax(task, measure)
        yield [label, *(spread_text(rows[name]["measures"][task][measure]) for name in ("softmax", "performer")),
               points(difference), f"{spread_text(recovered, 0)} %"]


def with_kernel_as_code(row):
    kernel = re.split("[ ,]", row)[0]
    return f"`{kernel}`{row.removeprefix(kernel)}"


@table("glue-kl")
def kl_in_classifiers():
    tasks = {"cola": "CoLA", "mrpc": "MRPC", "sst2": "SST-2"}
    yield ["kernel", *(name + ":" for name in tasks.values())]
    rows = raw("glue-kl")["rows"]
    for name in sorted(rows, key=lambda name: rows[name]["kl"]["mrpc"]["mean"]):
        yield [with_kernel_as_code(name), *(spread_text(rows[name]["kl"][task], 3, 1) for task in tasks)]


def most_growth_with_length():
    kl = {name: row["kl"] for name, row in raw("glue-lengths")["rows"].items()}
    return max(of[f"{task} 1024"]["mean"] - of[f"{task} 256"]["mean"] for of in kl.values() for task in ("cola", "sst2"))


@table("glue-lengths", derived=most_growth_with_length)
def kl_in_classifiers_at_lengths():
    tasks, lengths = {"cola": "CoLA", "sst2": "SST-2"}, (256, 1024)
    yield ["kernel", *(f"{name}, {length:,}:" for name in tasks.values() for length in lengths)]
    rows = raw("glue-lengths")["rows"]
    for name in sorted(rows, key=lambda name: rows[name]["kl"]["cola 256"]["mean"]):
        cells = [rows[name]["kl"][f"{task} {length}"] for task in tasks for length in lengths]
        yield [with_kernel_as_code(name),
               *(kl_text({"kl": cell["mean"], "kl_standard_error": cell["standard_errors"][0]}) for cell in cells)]


# ---- recall ----

def recalled():
    """The results by kernel and seed."""
    kernels = {}
    for seed, results in raw("recall-small")["seeds"].items():
        for one in results:
            kernels.setdefault(one["kernel"], {})[seed] = one
    return kernels


def recall_numbers():
    """exp-t1's accuracy less exp-t2's of the same seeds, in points."""
    accuracy = {kernel: [one["accuracy"] for one in found.values()] for kernel, found in recalled().items()}
    return {"exp-t1 − exp-t2": in_points(paired_difference(accuracy["exp-t1"], accuracy["exp-t2"]))}


@table("recall", also=["recall-paper"], derived=recall_numbers)
def associative_recall():
    paper = {kernel: told if isinstance(told, str) else f"{'' if told == 100 else 'about '}{told} %"
             for kernel, told in HEDGEHOG["associative recall"].items()}
    seeds = list(raw("recall-small")["seeds"])
    yield ["kernel", *(f"seed {seed}:" for seed in seeds), "entropy, nats:", "paper's task and model"]
    for kernel, found in sorted(recalled().items(), key=lambda item: -statistics.fmean(
            one["accuracy"] for one in item[1].values())):
        yield [f"`{kernel}`", *(percent(found[seed]["accuracy"]) if seed in found else "" for seed in seeds),
               f"{statistics.fmean(one['entropy'] for one in found.values()):.2f}", paper.get(kernel, "")]


# ---- tools/golden/compare_*.py ----

def short(error):
    return f"{error:.1e}".replace("e-0", "e-")


@table("agreement-decoders")
def agreement_of_decoders():
    """Errors relative to the largest value of a tensor, and perplexities."""
    yield ["model", "compared", "largest difference, or both values"]
    rows = raw("agreement-decoders")["rows"]
    names = {"gpt2": "GPT-2", "llama-linear": "Llama, its rope scaled linearly", "llama3-tied": "Llama 3, tied embeddings",
             "mistral": "Mistral", "qwen2": "Qwen2"}
    for row in rows:
        if "errors" in row:
            yield [f"{names[row['model']]}, random weights", ", ".join(row["errors"]),
                   short(max(row["errors"].values()))]
        else:
            yield [f"`{row['model']}`", f"perplexity of {row['tokens']:,} tokens in windows of {row['window']:,}",
                   f"{row['perplexity']:.3f} here, {row['transformers']:.3f} there"]


@table("agreement")
def agreement():
    """Error relative to the largest value of a tensor."""
    models = [row["error"] for row in raw("agreement-run")["rows"]]
    kernels = {(row["dtype"], row["scale"]): row["error"] for row in raw("agreement-attend")["rows"]}
    cases = raw("agreement-attend")["cases"]
    yield ["what", "largest difference"]
    yield ["logits, hidden states and attention against transformers, on random DeiT, distilled DeiT, ViT, DINOv2 and BERT "
           "checkpoints of real width", f"{short(min(models))} to {short(max(models))} of the largest value"]
    yield [f"`attend` with every kernel but your own (`phi`) against its formula in double precision, {cases} cases of up to 4,097 tokens, masks, "
           "widths 1 to 128", f"float32 {short(kernels['float32', 1])} (inputs × 30: {short(kernels['float32', 30])}, × 100: "
           f"{short(kernels['float32', 100])}), bfloat16 {short(kernels['bfloat16', 1])} of the largest value"]
    for name, label in [("tokenize", "lines of mixed Unicode on which `tokenize` and Hugging Face's tokenizer differ, WordPiece"),
                        ("byte-pair", "… byte-pair: three trained here, SmolLM2's")]:
        rows = raw(f"agreement-{name}")["rows"]
        yield [label, f"{max(row['differ'] for row in rows)} of {rows[0]['lines']:,}, for each of {len(rows)} tokenizers"]
