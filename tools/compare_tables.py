"""The tables of docs/ made from what tools/compare wrote, as functions of raw files (tools/results)."""
import statistics

from table_registry import percent, raw, smallest_to_largest, table

# The same rows on several dates: of the processor that kernels are published of, of all, and of models.
KERNELS = ("compare-kernels-intel", "compare-kernels-intel-again")
KERNELS_ZEN4 = ("compare-kernels-amd-zen4", "compare-kernels-amd-zen4-again", "compare-kernels-amd-zen4-third")
KERNELS_ZEN5 = ("compare-kernels-amd-zen5",)
PRESENT_HYDRA = ("compare-hydra-amd-zen4", "compare-hydra-amd-zen4-again")  # runs of Hydra's present loops alone
ALL_KERNELS = ("compare-kernels", "compare-kernels-again", *KERNELS, *KERNELS_ZEN4, *PRESENT_HYDRA, *KERNELS_ZEN5)
PUBLISHED_KERNELS = "compare-kernels-amd-zen4-again"
MODELS = (("compare-models", "compare-bert"), ("compare-models-again", "compare-bert-again"))
PUBLISHED_MODELS = MODELS[0]
GPU_KERNELS = ("compare-hydra-h200", "compare-hedgehog-h200")
# Cases and rows.
HYDRA, HEDGEHOG, DEIT, BERT = "hydra-cosine, D = 768", "hedgehog, 12 heads of 64", "DeiT-B", "BERT-base"
TRIAD, READING = "bound: a triad over as many bytes", "bound: reading as many bytes"
ROWS_ALONE, LOOP_ALONE = "bound: its rows alone", "its loop, without the program"
PRODUCTS, PRODUCTS_BFLOAT16 = "bound: the matrix products of its blocks alone", "bound: the products in bfloat16"


def ratio_text(value):
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def range_text(row):
    """A ratio of times, with the smallest and largest of a turn."""
    return over_all([row], False)


def shown(row):
    """A row's title: reading is no bound where it is slower than what also writes."""
    return row.removeprefix("bound: ") if row == READING else row


def compared(names, title, heading):
    """Rows beside the first one of a case, a column for each of its sizes: how many times as long each takes."""
    cases = {(one["tokens"], one["batch"]): {row["row"]: row for row in one["rows"]}
             for name in names for one in raw(name)["cases"] if one["case"] == title}
    yield ["times as long", *(heading(*size) + ":" for size in cases)]
    first, *others = dict.fromkeys(row for rows in cases.values() for row in rows)
    times = [statistics.median(rows[first]["ms"]) for rows in cases.values()]
    digits = 2 if min(times) >= 0.2 else 3  # a GPU's times are short
    yield [f"{first}, ms", *(f"{time:,.{digits}f}" for time in times)]
    for row in others:
        yield [shown(row), *(range_text(rows[row]) if row in rows else "" for rows in cases.values())]


def inverse_ratios(names):
    """By how many times the first row is faster than one with less time, by case and row."""
    return {f"{case['case']} {case['tokens']} {case['batch']} {row['row']}": 1 / row["ratio"]
            for name in names for case in raw(name)["cases"] for row in case["rows"] if row["ratio"] < 1}


def by_tokens(tokens, _):
    return f"{tokens:,} tokens"


@table("compare-hydra", derived=lambda: inverse_ratios([PUBLISHED_KERNELS]))
def hydra_beside_others():
    return compared([PUBLISHED_KERNELS], HYDRA, by_tokens)


@table("compare-hydra-now", derived=lambda: inverse_ratios(PRESENT_HYDRA[-1:]))
def changed_hydra_beside_others():
    return compared(PRESENT_HYDRA[-1:], HYDRA, by_tokens)


@table("compare-hedgehog", derived=lambda: inverse_ratios([PUBLISHED_KERNELS]))
def hedgehog_beside_others():
    return compared([PUBLISHED_KERNELS], HEDGEHOG, by_tokens)


@table("compare-hydra-h200", derived=lambda: inverse_ratios(GPU_KERNELS))
def hydra_on_a_gpu():
    return compared(GPU_KERNELS, HYDRA, by_tokens)


@table("compare-hedgehog-h200", derived=lambda: inverse_ratios(GPU_KERNELS))
def hedgehog_on_a_gpu():
    return compared(GPU_KERNELS, HEDGEHOG, by_tokens)


def fair(row):
    """Whether a row is of the program, a bound, or of PyTorch with the program's allocator, where it ran with that."""
    return "in PyTorch" not in row or "jemalloc" in row or "one run a turn" in row


def rows_of(names):
    """The rows of raw files of one date, by case, tokens, batch and title."""
    return {(one["case"], one["tokens"], one["batch"], row["row"]): row
            for name in names for one in raw(name)["cases"] for row in one["rows"]}


def measured_often(dates, wanted=lambda row: True):
    """Case, tokens, batch, row and the ratio on each of the dates, of all rows that at least two of these have; but for the
    one that others are compared with."""
    found = [rows_of(names) for names in dates]
    keys = list(dict.fromkeys(key for rows in found for key in rows))
    cases = list(dict.fromkeys(key[:3] for key in keys))
    for key in sorted(keys, key=lambda key: cases.index(key[:3])):
        ratios = {rows[key]["ratio"] for rows in found if key in rows}
        if wanted(key[3]) and ratios != {1} and sum(key in rows for rows in found) > 1:
            yield *key, [range_text(rows[key]) if key in rows else "" for rows in found]


def date(name):
    raw(name)
    return raw.read[name]["date"]


GENERATIONS = {("25", "17"): 4, ("26", "2"): 5}  # of AMD's, by family and model


def processor(name):
    """Its name, of AMD's with the generation. The oldest files do not tell family and model: those of Zen 4 are called so, and
    the others' loops reach more float32 operations a cycle than Zen 4 has."""
    raw(name)
    title, *about = raw.read[name]["cpu"].split(", ")
    found = title.replace("(R)", "").removesuffix(" Processor")
    if "AMD" not in found:
        return found
    if len(about) == 1:
        return f"{found} (Zen {4 if 'zen4' in name else 5})"
    return f"{found} (Zen {GENERATIONS[about[0].removeprefix('family '), about[1].removeprefix('model ')]})"


def by_processor(runs, rows_of, file_of=lambda name: name):
    """{processor: the rows of its runs}. file_of(run): a raw file of it."""
    found = {}
    for run in runs:
        found.setdefault(processor(file_of(run)), []).extend(rows_of(run))
    return found


def measured_on(names):
    """The processor of raw files, and their dates."""
    return f"{processor(names[0])}, {' and '.join(dict.fromkeys(date(name) for name in names))}"


def told_apart(titles):
    """Titles, with a number where one has come before."""
    titles = list(titles)
    return [f"{title} ({titles[:before].count(title) + 1})" if title in titles[:before] else title
            for before, title in enumerate(titles)]


@table("kernel-dates")
def kernels_on_several_dates():
    dates = [[name] for name in ALL_KERNELS]
    yield ["beside", "tokens:", "row", *(f"{title}:" for title in told_apart(measured_on(names) for names in dates))]
    for case, tokens, _, row, ratios in measured_often(dates, fair):
        yield [f"`{case.split(',')[0]}`", f"{tokens:,}", shown(row), *ratios]


@table("model-dates")
def models_on_several_dates():
    yield ["beside `flash`", "tokens:", "row", *(f"{measured_on(names)}:" for names in MODELS)]
    for case, tokens, batch, row, ratios in measured_often(MODELS):
        yield [case, f"{batch} × {tokens}", row, *ratios]


@table("compare-deit", derived=lambda: inverse_ratios(PUBLISHED_MODELS))
def deit_beside_others():
    return compared(PUBLISHED_MODELS, DEIT, lambda _, batch: f"batch of {batch}")


@table("compare-bert", derived=lambda: inverse_ratios(PUBLISHED_MODELS))
def bert_beside_others():
    return compared(PUBLISHED_MODELS, BERT, lambda tokens, batch: f"{batch} × {tokens} tokens")


def shares_of_time(ratio):
    """Of `flash` in float32: its blocks' products, attention as what is saved without it, and the rest."""
    products, attention = ratio[PRODUCTS], 1 - ratio["bound: no attention"]
    return products, attention, 1 - products - attention


@table("where-time-goes")
def where_time_goes():
    yield ["model", "measured on", "`flash`, ms:", "products:", "attention:", "the rest:", "bfloat16, times as fast:",
           "of it products:"]
    for name in [name for names in MODELS for name in names]:
        for one in raw(name)["cases"]:
            ratio = {row["row"]: row["ratio"] for row in one["rows"]}
            bfloat16 = ratio["flash, bfloat16"]
            yield [f"{one['case']}, {one['batch']} × {one['tokens']} tokens", measured_on([name]),
                   f"{statistics.median(one['rows'][0]['ms']):,.0f}",
                   *(percent(share, 0) for share in shares_of_time(ratio)), f"{1 / bfloat16:.2f}",
                   percent(ratio[PRODUCTS_BFLOAT16] / bfloat16, 0)]


@table("memory")
def memory_beside_others():
    """Peak resident memory of the whole process, in parentheses with its libraries alone."""
    def text(row):
        return f"{1e-6 * row['bytes']:,.0f} ({1e-6 * row['libraries_bytes']:,.0f})" if row else ""

    columns = {"this program": ["this program"], "PyTorch, eager": ["timm in PyTorch, eager", "transformers in PyTorch, eager"],
               "the same with jemalloc": ["timm in PyTorch, eager, jemalloc", "transformers in PyTorch, eager, jemalloc"],
               "ONNX Runtime": ["ONNX Runtime"]}
    yield ["peak MB (libraries alone)", *(column + ":" for column in columns)]
    for one in raw("compare-memory")["cases"]:
        rows = {row["row"]: row for row in one["rows"]}
        yield [f"{one['case']}, {one['batch']} × {one['tokens']} tokens",
               *(text(next((rows[name] for name in names if name in rows), None)) for names in columns.values())]


DECODERS = ("compare-decoder", "compare-decoder-zen4")


@table("compare-decoder")
def decoder_beside_others():
    cases = {name: raw(name)["cases"] for name in DECODERS}
    peers = list(dict.fromkeys(row["row"] for found in cases.values() for one in found for row in one["rows"][1:]))
    yield ["", "measured on", "this program, ms:", *(f"{peer}, times as long:" for peer in peers)]
    for place in range(len(cases[DECODERS[0]])):
        for name, found in cases.items():
            _, dtype, what = found[place]["case"].split(", ")
            tokens = f"{found[place]['tokens']:,}"
            own, *others = found[place]["rows"]
            ratios = {row["row"]: range_text(row) for row in others}
            yield [f"{what} {tokens} tokens, {dtype}" if what == "reading" else f"{what} {tokens}, {dtype}", measured_on([name]),
                   f"{statistics.median(own['ms']):,.1f}", *(ratios.get(peer, "") for peer in peers)]


def over_all(rows, per_cent):
    """The smallest to the largest ratio of rows, and of a turn."""
    def text(value):
        return f"{100 * value:.0f}" if per_cent else ratio_text(value)

    if not rows:
        return ""
    medians = smallest_to_largest([row["ratio"] for row in rows], text) + (" %" if per_cent else "")
    return f"{medians} ({text(min(row['least'] for row in rows))}…{text(max(row['most'] for row in rows))})"
