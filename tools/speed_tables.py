"""The tables of docs/ about speed, as functions of raw files (tools/results)."""
import statistics

from table_registry import percent, raw, table

# ---- tools/compare ----

def range_text(row):
    """A ratio of times, with the smallest and largest of a turn."""
    def text(value):
        return f"{value:.2f}" if value < 10 else f"{value:,.0f}"
    return f"{text(row['ratio'])} ({text(row['least'])}…{text(row['most'])})"


def compared(name, title, heading):
    """Rows beside the first one of a case, a column for each of its sizes: how many times as long each takes."""
    cases = {(one["tokens"], one["batch"]): {row["row"]: row for row in one["rows"]}
             for one in raw(name)["cases"] if one["case"] == title}
    yield ["times as long", *(heading(*size) + ":" for size in cases)]
    names = list(dict.fromkeys(row for rows in cases.values() for row in rows))
    yield [f"{names[0]}, ms", *(f"{statistics.median(rows[names[0]]['ms']):,.2f}" for rows in cases.values())]
    for row in names[1:]:
        yield [row, *(range_text(rows[row]) if row in rows else "" for rows in cases.values())]


def inverse_ratios(*names):
    """By how many times the first row is faster than one with less time, by case and row."""
    return {f"{case['case']} {case['tokens']} {case['batch']} {row['row']}": 1 / row["ratio"]
            for name in names for case in raw(name)["cases"] for row in case["rows"] if row["ratio"] < 1}


def by_tokens(tokens, _):
    return f"{tokens:,} tokens"


@table("compare-hydra", derived=lambda: inverse_ratios("compare-kernels"))
def hydra_beside_others():
    return compared("compare-kernels", "hydra-cosine, D = 768", by_tokens)


def exponentials():
    """Milliseconds of exp-t1 beyond relu's, which has no exponentials and needs nothing to keep them in range, and what of
    hedgehog's time twice as much is: the median of three runs."""
    found = [{one["kernel"]: one["median_ms"] for one in raw(f"exponentials-{run}")} for run in (1, 2, 3)]
    extra = statistics.median(run["exp-t1"] - run["relu"] for run in found)
    return {"exponentials, ms": extra, "of hedgehog, %": 200 * extra / statistics.median(run["hedgehog"] for run in found)}


PRODUCTS, PRODUCTS_BFLOAT16 = "bound: the matrix products of its blocks alone", "bound: the products in bfloat16"


def gains_of_bfloat16():
    """How many times as fast the products of whole models are in bfloat16, and two loops alone on one thread."""
    rows = {f"{case['case']} {case['tokens']} {case['batch']}": {row["row"]: row["ratio"] for row in case["rows"]}
            for name in ("compare-models", "compare-bert") for case in raw(name)["cases"]}
    rates = {one["name"]: one.get("FLOP/s") for one in raw("loops")["benchmarks"]}
    return {case: ratios[PRODUCTS] / ratios[PRODUCTS_BFLOAT16] for case, ratios in rows.items()} | {
        loop: rates[f"{loop}/avx512bf16/4096"] / rates[f"{loop}/avx512/4096"] for loop in ("hedgehog", "flash")}


@table("compare-hedgehog", derived=lambda: inverse_ratios("compare-kernels") | exponentials() | gains_of_bfloat16())
def hedgehog_beside_others():
    return compared("compare-kernels", "hedgehog, 12 heads of 64", by_tokens)


def fair(row):
    """Whether a row is a bound, the program's own, or has the program's allocator."""
    return any(word in row for word in ("bound", "bfloat16", "jemalloc", "flash", "one run a turn"))


def measured_twice(first, second, shown):
    """Case, row and ratios of the cases and rows that both raw files have, first and second measurement side by side."""
    of_second = {(one["case"], one["tokens"], one["batch"]): {row["row"]: row for row in one["rows"]}
                 for one in raw(second)["cases"]}
    for one in raw(first)["cases"]:
        others = of_second.get((one["case"], one["tokens"], one["batch"]), {})
        for row in one["rows"] if others else []:
            if shown(row["row"]) and row["row"] in others:
                yield one, [row["row"], range_text(row), range_text(others[row["row"]])]


def kernels_measured_twice(second, heading):
    files = ("compare-kernels", second)
    rows = list(measured_twice(*files, fair))
    yield ["beside", "tokens:", "row", *(f"{heading(name)}:" for name in files)]
    for case, row in rows:
        yield [f"`{case['case'].split(',')[0]}`", f"{case['tokens']:,}", *row]


def date(name):
    return raw.read[name]["date"]


def processor(name):
    return raw.read[name]["cpu"].split(",")[0].replace("(R)", "").removesuffix(" Processor")


@table("compare-processors")
def deit_on_two_processors():
    files = ("compare-models", "compare-models-again")
    rows = list(measured_twice(*files, lambda row: not row.endswith("own")))
    yield ["times as long", "batch:", *(f"{processor(name)}, {date(name)}:" for name in files)]
    for case, (row, *ratios) in rows:
        yield [row, str(case["batch"]), *ratios]


@table("compare-dates")
def kernels_on_two_dates():
    return kernels_measured_twice("compare-kernels-again", date)


@table("kernel-processors")
def kernels_on_two_processors():
    return kernels_measured_twice("compare-kernels-intel", lambda name: f"{processor(name)}, {date(name)}")


def few_tokens():
    """Milliseconds of each run with one and with two threads, by kernel and tokens; the runs took turns."""
    runs = {threads: [{(one["kernel"], one["N"]): one["median_ms"] for one in raw(f"few-tokens-{threads}-{run}")}
                      for run in (1, 2, 3)] for threads in (1, 2)}
    return {case: [[run[case] for run in runs[threads]] for threads in (1, 2)] for case in runs[1][0]}


def gains_of_threads(one, two):
    """How many times as fast two threads are, as a ratio of tools/compare."""
    return over_runs([first / second for first, second in zip(one, two, strict=True)])


@table("few-tokens")
def time_of_threads():
    yield ["kernel", "tokens:", "one thread, ms:", "two threads, ms:", "times as fast:"]
    for (kernel, tokens), times in few_tokens().items():
        yield [f"`{kernel}`", f"{tokens:,}", *(f"{statistics.median(of_runs):.2f}" for of_runs in times),
               range_text(gains_of_threads(*times))]


@table("compare-deit", derived=lambda: inverse_ratios("compare-models"))
def deit_beside_others():
    return compared("compare-models", "DeiT-B", lambda _, batch: f"batch of {batch}")


@table("compare-bert", derived=lambda: inverse_ratios("compare-bert"))
def bert_beside_others():
    return compared("compare-bert", "BERT-base", lambda tokens, batch: f"{batch} × {tokens} tokens")


@table("where-time-goes")
def where_time_goes():
    """Shares of the time of softmax (`flash`) in float32: its blocks' products, and attention as what is saved without it."""
    yield ["model", "`flash`, ms:", "products:", "attention:", "the rest:", "bfloat16, times as fast:", "of it products:"]
    for one in [*raw("compare-models")["cases"], *raw("compare-bert")["cases"]]:
        ratio = {row["row"]: row["ratio"] for row in one["rows"]}
        products, attention = ratio[PRODUCTS], 1 - ratio["bound: no attention"]
        bfloat16 = ratio["flash, bfloat16"]
        size = f"{one['batch']} × {one['tokens']} tokens"
        yield [f"{one['case']}, {size}", f"{statistics.median(one['rows'][0]['ms']):,.0f}", percent(products, 0),
               percent(attention, 0), percent(1 - products - attention, 0), f"{1 / bfloat16:.2f}",
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


@table("compare-decoder")
def decoder_beside_others():
    cases = raw("compare-decoder")["cases"]
    yield ["", "this program, ms:", *(f"{row['row']}, times as long:" for row in cases[0]["rows"][1:])]
    for one in cases:
        _, dtype, what = one["case"].split(", ")
        name = f"{what} {one['tokens']:,} tokens" if what == "reading" else f"{what} {one['tokens']:,}"
        own, *others = one["rows"]
        yield [f"{name}, {dtype}", f"{statistics.median(own['ms']):,.1f}", *(range_text(row) for row in others)]


def over_all(rows, per_cent):
    """The smallest to the largest ratio of rows, and of a turn."""
    def text(value):
        return f"{100 * value:.0f}" if per_cent else f"{value:.2f}"

    if not rows:
        return ""
    ratios = list(dict.fromkeys(text(ratio) for ratio in sorted(row["ratio"] for row in rows)))
    shown = (ratios[0] if len(ratios) == 1 else f"{ratios[0]} to {ratios[-1]}") + (" %" if per_cent else "")
    return f"{shown} ({text(min(row['least'] for row in rows))}…{text(max(row['most'] for row in rows))})"


# ---- bench kernels, several runs ----

def over_runs(values):
    """As a row of tools/compare: the median, the smallest and the largest."""
    return {"ratio": statistics.median(values), "least": min(values), "most": max(values)}


FAMILY_LENGTHS = (4096, 32768)


def family():
    """By kernel and tokens, where both types were measured: the share of the float32 rate of products, and how many times
    as fast bfloat16 is, each within its run."""
    runs = [{(one["kernel"], one["N"], one["dtype"]): one for one in raw(f"family-{number}")} for number in range(1, 6)]
    shares, gains = {}, {}
    for kernel, tokens in dict.fromkeys((kernel, tokens) for kernel, tokens, _ in runs[0]):
        pairs = [(run[kernel, tokens, "float32"], run[kernel, tokens, "bfloat16"]) for run in runs]
        if all("skipped" not in one for pair in pairs for one in pair):
            shares[kernel, tokens] = over_runs([single["share_of_flops"] for single, _ in pairs])
            gains[kernel, tokens] = over_runs([single["median_ms"] / half["median_ms"] for single, half in pairs])
    return shares, gains


@table("family")
def family_beside_its_bound():
    shares, gains = family()
    yield ["kernel", *(f"share of the float32 rate, {tokens:,} tokens:" for tokens in FAMILY_LENGTHS),
           *(f"bfloat16, times as fast, {tokens:,}:" for tokens in FAMILY_LENGTHS)]
    for kernel in dict.fromkeys(kernel for kernel, _ in shares):
        yield [f"`{kernel}`",
               *(over_all([shares[kernel, tokens]], True) if (kernel, tokens) in shares else "" for tokens in FAMILY_LENGTHS),
               *(range_text(gains[kernel, tokens]) if (kernel, tokens) in gains else "" for tokens in FAMILY_LENGTHS)]


# ---- bench interact, bench write ----

def range_over_runs(runs, key, statistic, digits=0):
    """Of a time in ms, over several runs: the smallest to the largest, as written."""
    texts = [f"{value:,.{digits}f}" for value in sorted(run[key][statistic] for run in runs)]
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


WINDOW_GOALS = {"first_frame_ms": 300, "first_result_ms": 800, "switch_last_layer_ms": 40}


@table("interact", also=["interact-text"])
def waiting_at_the_window():
    runs = [raw(f"interact-{number}") for number in (1, 2, 3)]
    yield ["what", "goal, ms:", "median, ms:", "95th percentile, ms:"]
    for key, label in [("first_frame_ms", "first frame, after the start of the process"),
                       ("first_result_ms", "first result"),
                       ("switch_last_layer_ms", "from switching a kernel until its result shows, last layer"),
                       ("switch_first_layer_ms", "… first layer, which is a full pass"),
                       ("key_last_layer_ms", "from a key typed in *Your kernel* until weights and KL show, last layer"),
                       ("key_first_layer_ms", "… first layer"),
                       ("frame_ms", "main-thread time of a frame while a model runs"),
                       ("frame_cpu_ms", "… without rendering")]:
        once = key in ("first_frame_ms", "first_result_ms")
        digits = 1 if key == "frame_cpu_ms" else 0
        yield [label, str(WINDOW_GOALS.get(key, "")), range_over_runs(runs, key, "median", digits),
               "" if once else range_over_runs(runs, key, "p95", digits)]


def starts():
    return [raw(f"start-{number}") for number in range(1, 6)]


@table("start")
def what_the_start_waits_for():
    yield ["since the start of the process", "ms:"]
    for key, label in [("started_ms", "libraries are loaded, their constructors have run"),
                       ("opened_ms", "the window can draw: display, fonts, settings, list of models"),
                       ("first_frame_ms", "first frame"), ("first_result_ms", "first result")]:
        yield [label, range_over_runs(starts(), key, "median")]
    for key, label in [("first_run_ms", "the first run alone, with loading the model and its adapters"),
                       ("first_run_layers_ms", "… of which layers, which pack their weights as they come")]:
        yield [label, range_over_runs(starts(), key, "median")]


@table("how-soon")
def from_a_key_to_weights():
    yield ["model", "last layer, ms:", "first layer, ms:"]
    for model, names in (("minilm", ["interact-text"]), ("vit-small", ["interact-1", "interact-2", "interact-3"])):
        yield [f"`{model}`", *(range_over_runs([raw(name) for name in names], key, "median")
                               for key in ("key_last_layer_ms", "key_first_layer_ms"))]


@table("browse")
def opening_every_head():
    found = raw("browse")
    yield ["what", "median, ms:", "95th percentile, ms:", "largest, ms:"]
    for key, label in [("first_weights_ms", "first weights, after the start of the process"),
                       ("open_head_ms", f"from choosing a head until its weights show, {found['heads']:.0f} heads"),
                       ("pan_frame_ms", "a frame while zooming and panning"), ("pan_frame_cpu_ms", "… without rendering")]:
        one = found[key]
        once = key == "first_weights_ms"
        yield [label, milliseconds(one["median"]), *("" if once else milliseconds(one[name]) for name in ("p95", "max"))]


# ---- bench scaling, bench heads ----

def milliseconds(value):
    return "—" if value is None else f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


@table("every-kernel", derived=lambda: {f"{one['kernel']} {one['N']}": 1e-6 * one["peak_bytes"]
                                     for one in raw("scaling") if "peak_bytes" in one})
def time_of_every_kernel():
    lengths = [256, 1024, 4096, 16384, 32768]
    times = {(one["kernel"], one["N"]): one.get("median_ms") for one in raw("scaling")}
    yield ["kernel", *(f"{length:,}:" for length in lengths)]
    for kernel in dict.fromkeys(kernel for kernel, _ in times):
        yield [f"`{kernel}`", *(milliseconds(times[kernel, length]) for length in lengths)]


@table("heads-speed")
def time_by_number_of_heads():
    points = {(one["kernel"], one["H"]): one for one in raw("heads")}
    heads = [1, 3, 6, 12, 48, 96, 384, 768]
    yield ["heads", *(f"{count}:" for count in heads)]
    for kernel in ("softmax", "linear-cosine"):
        yield [f"`{kernel}`, ms", *(f"{points[kernel, count]['median_ms']:.2f}" for count in heads)]
    for kernel in ("softmax", "linear-cosine"):
        yield [f"`{kernel}`, MB", *(f"{1e-6 * points[kernel, count]['peak_bytes']:.1f}" for count in heads)]


@table("writing", also=["writing-follow"])
def writing_in_the_window():
    runs = [raw(f"writing-{number}") for number in (1, 2)]
    yield ["what", "median, ms:", "95th percentile, ms:"]
    each = sorted(run["each_side_ms_a_token"] for run in runs)
    yield ["each side gets a token every …", f"{each[0]:.1f} and {each[1]:.1f}", ""]
    for key, label in [("token_a_ms", "a token of A, without waiting for the other"), ("token_b_ms", "a token of B"),
                       ("frame_cpu_ms", "main-thread time of a frame meanwhile, without rendering")]:
        yield [label, range_over_runs(runs, key, "median", 1), range_over_runs(runs, key, "p95", 1)]
    following = raw("writing-follow")["frame_cpu_ms"]
    yield ["… where the other panels follow (one run)", f"{following['median']:.1f}", f"{following['p95']:.1f}"]


# ---- bench generate ----

def of_cases(value):
    """A value of bench generate in float32, by kernel and context."""
    return {(one["schedule"].split(" ")[0], one["context"]): one[value] for one in raw("generate-float32")}


def growth_with_length():
    """By how many per cent a kernel's slowest context is slower than its fastest."""
    times = of_cases("decode_ms")
    of_kernel = {kernel: [time for (one, _), time in times.items() if one == kernel] for kernel, _ in times}
    return {kernel: 100 * (max(found) / min(found) - 1) for kernel, found in of_kernel.items()}


@table("generate", also=["generate-bfloat16"], derived=growth_with_length)
def time_of_a_token():
    times, ranges, states = (of_cases(value) for value in ("decode_ms", "decode_ms_range", "state_bytes"))

    def text(case):
        least, most = ranges[case]
        return f"{times[case]:.1f} ({least:.1f}…{most:.1f})"

    contexts = sorted({context for _, context in times})
    yield ["kernel of all layers", *(f"{context:,}:" for context in contexts), f"state at {contexts[-1]:,}:"]
    for kernel in dict.fromkeys(kernel for kernel, _ in times):
        state = states[kernel, contexts[-1]] / 1e6
        yield [f"`{kernel}`", *(text((kernel, context)) for context in contexts),
               f"{state:.0f} MB" if state >= 100 else f"{state:.1f} MB"]


# ---- build/cpu_loops ----

@table("loops")
def loops_alone():
    yield ["at 4,096 tokens", "any processor:", "AVX2:", "AVX-512:", "AVX512-BF16:", "AMX-BF16:"]
    for file in ("loops", "loops-amx"):
        found = {one["name"]: one for one in raw(file)["benchmarks"]}
        for loop, unit in [("hydra-cosine", "bytes_per_second"), ("hedgehog", "FLOP/s"), ("flash", "FLOP/s")]:
            names = (f"{loop}/{kind}/4096" for kind in ("plain", "avx2", "avx512", "avx512bf16", "amx"))
            yield [f"{loop}, G{'B/s' if unit == 'bytes_per_second' else 'FLOP/s'}, {processor(file)}",
                   *(f"{1e-9 * found[name][unit]:,.0f}" if name in found else "" for name in names)]


def loops_beside_products(kind):
    """By kernel: GFLOP/s of the products alone and of the whole loop, with all data in a cache, for a kind of processor."""
    rates = {one["run_name"]: 1e-9 * one["FLOP/s"] for one in raw("loops-linear")["benchmarks"]
             if one.get("aggregate_name") == "median"}
    for name in rates:
        kernel, found, *tokens = name.split("/")
        if found == kind and tokens:
            yield kernel, rates[f"{kernel}-products/{kind}"], rates[name]


@table("loops-linear")
def linear_loops_beside_products():
    kinds = ("avx512", "amx")
    rows = {kernel: [] for kernel, _, _ in loops_beside_products(kinds[0])}
    for kind in kinds:
        for kernel, products, loop in loops_beside_products(kind):
            rows[kernel] += [f"{products:.0f}", f"{loop:.0f}", percent(loop / products, 0)]
    yield ["GFLOP/s", *(f"{what}, {kind}:" for kind in ("float32", "bfloat16, AMX")
                        for what in ("products alone", "the loop", "share"))]
    for kernel, cells in rows.items():
        yield [f"`{kernel}`", *cells]
