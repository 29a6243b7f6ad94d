"""The tables of docs/ about the image model, as functions of raw files (tools/results)."""
import re
import statistics

from experiment import paired_difference, spread, spread_text
from table_registry import PAPERS, percent, points, raw, table, with_error

TABLE_5 = PAPERS["Bolya et al. 2022, Hydra Attention"]["table 5, DeiT-B on ImageNet, top-1 with hydra in 12 layers"]


@table("curves", derived=lambda: raw("curves-softmax")["curves_differences"])
def deletion_and_insertion():
    output = raw("curves-softmax")
    yield ["order of the patches", "deletion:", "insertion:", "deletion − random:", "insertion − random:"]
    names = {"focus": "focus map", "attention": "the class token's attention", "rollout": "rollout",
             "centre": "nearest to the middle first", "random": "random"}
    over_random = {one["of"]: one for one in output["curves_differences"] if one["from"] == "random"}
    for name, label in names.items():
        shown = [with_error(one) for areas in (output["curves"][name], over_random.get(name, {}))
                 for one in (areas.get("deletion"), areas.get("insertion")) if one]
        yield [label, *shown, *[""] * (4 - len(shown))]


def top1(row):
    """Before training, and after it over the seeds."""
    return percent(row["before"]), f"{spread_text(spread(row['after']))} %"


def vision(name):
    return raw(f"vision-{name}")["rows"]


def gaps(name, control_of):
    """Of means over the seeds, in points: of each row the difference to its control, of each control that to itself before
    training."""
    rows = vision(name)
    after = {row: statistics.fmean(rows[row]["after"]) for row in rows}
    return ({f"{row} − {control_of(row)}": 100 * (after[row] - after[control_of(row)]) for row in rows}
            | {f"{row} − before": 100 * (after[row] - rows[row]["before"]) for row in map(control_of, rows)})


def error_of_share(share, count):
    """The standard error of a share of so many pictures, in points."""
    return 100 * (share * (1 - share) / count) ** 0.5


def errors_of_row(row, count):
    """In points: the standard error of a row's mean top-1 on so many pictures, and at most of the difference of two rows."""
    error = error_of_share(statistics.fmean(row["after"]), count)
    return [error, 2**0.5 * error]


@table("heads", derived=lambda: [gaps("heads", lambda row: "softmax:heads=6"),
                                 errors_of_row(vision("heads")["softmax:heads=6"], 5000)])
def heads_of_the_last_layers():
    rows = vision("heads")
    yield ["heads", "`softmax`:", "`linear-cosine`, norms within a head:", "`linear-cosine`, norms over all features:"]
    for heads in [heads for heads in (1, 3, 6, 12, 48, 96, 384) if f"softmax:heads={heads}" in rows]:
        yield [str(heads), *(top1(rows[kernel.format(heads)])[1] for kernel in (
            "softmax:heads={}", "linear-cosine:heads={}", "linear-cosine:heads={},norm=row"))]


@table("places", derived=lambda: gaps("places", lambda row: "softmax"))
def layers_with_hydra():
    rows = vision("places")
    yield ["layers with `hydra-cosine`", "front:", "interleaved:", "back:"]
    yield ["0", top1(rows["softmax"])[1], "", ""]
    for count in (2, 4, 6, 8, 10):
        yield [str(count), *(top1(rows[f"{place}:{count}=hydra-cosine"])[1] for place in ("front", "interleave", "back"))]
    yield ["12", "", "", top1(rows["back:12=hydra-cosine"])[1]]


def control_of_heads(heads):
    """Softmax was not trained with more than eight."""
    return f"softmax:heads={min(heads, 8)}"


def scratch_differences():
    """A row's top-1 − its control's of the same seed, in points: softmax's in all layers; and AFT-Simple's − Hydra's."""
    heads, places = vision("scratch-heads"), vision("scratch-places")
    controls = [(heads, row, control_of_heads(int(re.search("heads=([0-9]+)", row)[1]))) for row in heads]
    controls += [(places, row, "softmax") for row in places]
    controls += [(places, "back:6=aft-simple", "back:6=hydra-cosine")]
    return {f"{row} − {control}": [100 * number for number in paired_difference(
        rows[row]["after"], rows[control]["after"]).values()] for rows, row, control in controls if row != control}


@table("scratch-heads", derived=lambda: [scratch_differences(), errors_of_row(vision("scratch-places")["softmax"], 1000)])
def heads_from_random_weights():
    rows = vision("scratch-heads")
    yield ["heads", "`softmax`:", "`linear-cosine`, norms within a head:", "− softmax's:",
           "`linear-cosine`, norms over all features:", "− softmax's:"]
    for heads in (1, 8, 64):
        own, control = rows.get(f"softmax:heads={heads}"), rows[control_of_heads(heads)]
        cells = [top1(own)[1] if own else ""]
        for norm in "", ",norm=row" if heads > 1 else "":  # one head has all features
            row = rows[f"linear-cosine:heads={heads}{norm}"]
            cells += [top1(row)[1], points(paired_difference(row["after"], control["after"]))]
        yield [str(heads), *cells]


@table("scratch-places", derived=lambda: [scratch_differences(), TABLE_5["hydra-cosine"] - TABLE_5["aft-simple"]])
def layers_from_random_weights():
    rows = vision("scratch-places")
    differences = beside_softmax(rows)
    yield ["layers of six", "top-1:", "− softmax's:"]
    names = {"softmax": "`softmax` in all", "back:6=hydra-cosine": "`hydra-cosine` in all",
             "back:6=aft-simple": "`aft-simple` in all"}
    for name, row in rows.items():
        place, _, count = name.partition("=")[0].partition(":")
        where = "interleaved" if place == "interleave" else place
        label = names.get(name, f"`hydra-cosine` in {count}, {where}")
        yield [label, top1(row)[1], "" if name == "softmax" else points(differences[name])]


@table("hydra-kernels", derived=lambda: gaps("kernels", lambda row: row.partition("=")[0] + "=softmax"))
def kernels_of_hydra():
    rows, counts = vision("kernels"), {2: "last two layers", 4: "last four", 12: "all"}
    yield ["kernel", *(head for name in counts.values() for head in (f"{name}, before:", "after:")),
           "paper, DeiT-B, all:"]
    kernels = [row.removeprefix("back:2=") for row in rows if row.startswith("back:2=")]
    for kernel in sorted(kernels, key=lambda kernel: -statistics.fmean(rows[f"back:2={kernel}"]["after"])):
        yield [f"`{kernel}`", *(cell for count in counts for cell in top1(rows[f"back:{count}={kernel}"])),
               f"{TABLE_5[kernel]:.1f} %" if kernel in TABLE_5 else ""]


def beside_softmax(rows):
    """A kernel's top-1 after training − softmax's of the same seed, in points."""
    return {name: paired_difference(row["after"], rows["softmax"]["after"]) for name, row in rows.items()}


@table("maps")
def learned_maps():
    rows = vision("maps")
    differences = beside_softmax(rows)
    yield ["kernel of all layers", "before:", "after:", "after − softmax's:"]
    for name, row in sorted(rows.items(), key=lambda item: -statistics.fmean(item[1]["after"])):
        yield [f"`{name}`", *top1(row), "" if name == "softmax" else points(differences[name])]


# Bundled adapters: the raw file's name behind "image-", schedule, what was trained, and of how many epochs of each training
# the table's own pictures chose one.
BUNDLED = [("softmax", "`softmax`", "layers 8 to 11 and head, 8 epochs; 4 to 11 and head, 5 epochs", "of 8; of 5"),
           ("hydra-cosine", "`back:2=hydra-cosine`", "layers 10 and 11, 5 epochs", "of 5"),
           ("aft-simple", "`back:2=aft-simple`", "layers 10 and 11, 3 epochs", "of 3"),
           ("hydra-tanh-l2", "`back:2=hydra-tanh-l2`", "layers 10 and 11, 3 epochs", "of 3"),
           ("poly-nl", "`back:2=poly-nl`", "layers 10 and 11, 3 epochs", "of 3"),
           ("hydra-cosine-back4", "`back:4=hydra-cosine`", "attention of layers 8 to 11, 2 epochs, from labels", "of 2"),
           ("hedgehog-maps", "`hedgehog`", "the maps alone, on 4,000 pictures", "no, KL did"),
           ("hedgehog", "`hedgehog`", "maps, attention of all layers, layers 8 to 11, head", "of 1 or none, four times")]


def numbers_of_bundled():
    """In points of top-1: how much each schedule loses at 252 pixels, how much more Hydra does, and the greatest error of
    that, as if its four shares were independent; the error of a row of the table, and of the difference of two at most."""
    shares = {kernel: [raw(f"image-{kernel}-{which}")["top1"] for which in ("1000", "252")]
              for kernel in ("softmax", "hydra-cosine")}
    lost = {kernel: 100 * (before - after) for kernel, (before, after) in shares.items()}
    errors = [error_of_share(share, raw("image-softmax-252")["items"]) for pair in shares.values() for share in pair]
    whole = raw("image-softmax")
    return [lost, lost["hydra-cosine"] - lost["softmax"], sum(error**2 for error in errors) ** 0.5,
            errors_of_row({"after": [whole["top1"]]}, whole["items"])]


@table("image", also=[f"image-{kernel}-{which}" for kernel in ("softmax", "hydra-cosine") for which in ("1000", "252")],
       derived=numbers_of_bundled)
def bundled_adapters():
    yield ["schedule", "what was trained through it", "epoch chosen by these pictures", "top-1, no control:", "top-5:"]
    for name, schedule, trained, chosen in BUNDLED:
        output = raw(f"image-{name}")
        yield [schedule, trained, chosen, percent(output["top1"]), percent(output["top5"])]


def error_of_hits():
    """The standard error of softmax's share of hits, in points."""
    found = raw("image-pointing-softmax")
    return error_of_share(found["pointing"]["focus"], found["pointing_items"])


@table("pointing", derived=error_of_hits)
def pointing_game():
    hits = {kernel: raw(f"image-pointing-{kernel}")["pointing"] for kernel in ("softmax", "hydra-cosine")}
    yield ["map", "hits:"]
    yield ["focus map, softmax", percent(hits["softmax"]["focus"])]
    yield ["focus map, `hydra-cosine` in the last two layers", percent(hits["hydra-cosine"]["focus"])]
    for name, label in [("attention", "the class token's attention"), ("rollout", "rollout"),
                        ("centre", "the middle of the picture"), ("chance", "a random patch")]:
        yield [label, percent(hits["softmax"][name])]
