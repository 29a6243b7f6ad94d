"""The tables of docs/ about what `bench` and build/cpu_loops printed, as functions of raw files (tools/results)."""
import statistics

from compare_tables import by_processor, measured_on, over_all, processor, range_text, told_apart
from table_registry import percent, raw, smallest_to_largest, table

# ---- bench kernels, several runs ----

def over_runs(values):
    """As a row of tools/compare: the median, the smallest and the largest."""
    return {"ratio": statistics.median(values), "least": min(values), "most": max(values)}


FEW_TOKENS_ALONE = "few-tokens-zen4-third"  # no other program of ours ran
FEW_TOKENS_BESIDE = "few-tokens-zen4-beside"  # one kept a processor busy
FEW_TOKENS = ("few-tokens", "few-tokens-again", "few-tokens-zen4", "few-tokens-zen4-again", FEW_TOKENS_ALONE)


def few_tokens(name):
    """Milliseconds of each run with one and with two threads, by kernel and tokens; the runs took turns."""
    runs = {threads: [{(one["kernel"], one["N"]): one["median_ms"] for one in raw(f"{name}-{threads}-{run}")
                       if one["dtype"] == "float32"} for run in (1, 2, 3)] for threads in (1, 2)}
    return {case: [[run[case] for run in runs[threads]] for threads in (1, 2)] for case in runs[1][0]}


def gains_of_threads(one, two):
    """How many times as fast two threads are, as a ratio of tools/compare."""
    return over_runs([first / second for first, second in zip(one, two, strict=True)])


@table("few-tokens")
def gain_of_a_second_thread():
    dates = {name: few_tokens(name) for name in FEW_TOKENS}
    yield ["kernel", "tokens:", *(f"{title}:" for title in told_apart(measured_on([f"{name}-1-1"]) for name in FEW_TOKENS))]
    for kernel, tokens in dates[FEW_TOKENS[0]]:
        yield [f"`{kernel}`", f"{tokens:,}",
               *(range_text(gains_of_threads(*times[kernel, tokens])) for times in dates.values())]


FAMILY = ("family", "family-again", "family-zen4", "family-zen5")
FAMILY_LENGTHS = (4096, 32768)


def family(name):
    """By kernel and tokens, where both types were measured: the share of the float32 rate of products, and how many times
    as fast bfloat16 is, each within its run."""
    runs = [{(one["kernel"], one["N"], one["dtype"]): one for one in raw(f"{name}-{number}")} for number in range(1, 6)]
    shares, gains = {}, {}
    for kernel, tokens in dict.fromkeys((kernel, tokens) for kernel, tokens, _ in runs[0]):
        pairs = [(run[kernel, tokens, "float32"], run[kernel, tokens, "bfloat16"]) for run in runs]
        if all("skipped" not in one for pair in pairs for one in pair):
            shares[kernel, tokens] = over_runs([single["share_of_flops"] for single, _ in pairs])
            gains[kernel, tokens] = over_runs([single["median_ms"] / half["median_ms"] for single, half in pairs])
    return shares, gains


@table("family")
def family_beside_its_bound():
    yield ["kernel", "measured on", *(f"share of the float32 rate, {tokens:,} tokens:" for tokens in FAMILY_LENGTHS),
           *(f"bfloat16, times as fast, {tokens:,}:" for tokens in FAMILY_LENGTHS)]
    dates = {name: family(name) for name in FAMILY}
    for kernel in dict.fromkeys(kernel for shares, _ in dates.values() for kernel, _ in shares):
        for name, (shares, gains) in dates.items():
            cases = [(kernel, tokens) for tokens in FAMILY_LENGTHS]
            yield [f"`{kernel}`" if name == FAMILY[0] else "", measured_on([f"{name}-1"]),
                   *(over_all([shares[case]], True) if case in shares else "" for case in cases),
                   *(range_text(gains[case]) if case in gains else "" for case in cases)]


# ---- bench interact, bench write ----

def range_over_runs(runs, key, statistic, digits=0):
    """Of a time in ms, over several runs: the smallest to the largest, as written."""
    return smallest_to_largest([run[key][statistic] for run in runs], lambda value: f"{value:,.{digits}f}")


WINDOW_RUNS = tuple(f"interact-{number}" for number in (1, 2, 3))
WINDOW_GOALS = {"first_frame_ms": 300, "first_result_ms": 800, "switch_last_layer_ms": 40}


@table("interact", also=["interact-text"])
def waiting_at_the_window():
    runs = [raw(name) for name in WINDOW_RUNS]
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


STARTS = tuple(f"start-{number}" for number in range(1, 6)) + tuple(f"start-zen4-{number}" for number in range(1, 6))


def of_starts(labels):
    """A row for each label: {key: label}; columns are processors. What older files do not have stays empty."""
    runs = by_processor(STARTS, lambda name: [raw(name)])
    for key, label in labels.items():
        yield [label, *(range_over_runs(found, key, "median") if all(key in run for run in found) else ""
                        for found in runs.values())]


def start_columns(title):
    return [title, *(f"{name}, ms:" for name in dict.fromkeys(processor(name) for name in STARTS))]


@table("start")
def what_the_start_waits_for():
    yield start_columns("since the start of the process")
    yield from of_starts({
        "started_ms": "libraries are loaded, their constructors have run",
        "opened_ms": "the window can draw: display, fonts, settings, list of models",
        "display_ms": "… of which opening the display (EGL)",
        "graphics_ms": "… of which reading fonts and compiling shaders",
        "first_frame_ms": "first frame",
        "first_frame_total_ms": "… this frame alone",
        "first_frame_cpu_ms": "… of it without rendering",
        "first_result_ms": "first result",
        "first_run_ms": "the first run alone",
        "first_run_preparing_ms": "… of which loading the model and its adapters, and preparing the input",
        "first_run_layers_ms": "… of which layers, which pack their weights as they come"})


@table("switch")
def what_a_switch_waits_for():
    yield start_columns("another kernel in the last layer")
    yield from of_starts({
        "switch_last_layer_ms": "until its focus map shows",
        "switch_last_run_ms": "… of which the run: the layer, forwards and backwards",
        "switch_last_frame_ms": "… of which the frame that shows it",
        "switch_last_frame_cpu_ms": "… of it without rendering"})


@table("how-soon")
def from_a_key_to_weights():
    yield ["model", "last layer, ms:", "first layer, ms:"]
    for model, names in (("minilm", ["interact-text"]), ("vit-small", WINDOW_RUNS)):
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

def of_cases(name, value):
    """A value of bench generate, by kernel and context."""
    return {(one["schedule"].split(" ")[0], one["context"]): one[value] for one in raw(name)}


def growth_with_length():
    """By how many per cent a kernel's slowest context is slower than its fastest."""
    times = of_cases("generate-float32", "decode_ms")
    of_kernel = {kernel: [time for (one, _), time in times.items() if one == kernel] for kernel, _ in times}
    return {kernel: 100 * (max(found) / min(found) - 1) for kernel, found in of_kernel.items()}


def times_of_a_token(name):
    times, ranges, states = (of_cases(name, value) for value in ("decode_ms", "decode_ms_range", "state_bytes"))

    def text(case):
        least, most = ranges[case]
        return f"{times[case]:.1f} ({least:.1f}…{most:.1f})"

    contexts = sorted({context for _, context in times})
    yield ["kernel of all layers", *(f"{context:,}:" for context in contexts), f"state at {contexts[-1]:,}:"]
    for kernel in dict.fromkeys(kernel for kernel, _ in times):
        state = states[kernel, contexts[-1]] / 1e6
        yield [f"`{kernel}`", *(text((kernel, context)) for context in contexts),
               f"{state:.0f} MB" if state >= 100 else f"{state:.1f} MB"]


@table("generate", also=["generate-bfloat16"], derived=growth_with_length)
def time_of_a_token():
    return times_of_a_token("generate-float32")


@table("generate-h200")
def time_of_a_token_on_a_gpu():
    return times_of_a_token("generate-h200")


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


LINEAR_LOOPS = ("loops-linear", "loops-linear-again", "loops-zen4", "loops-zen5")


def kind_with_bfloat16(name):
    """The kind of processor whose products in bfloat16 a file has."""
    return "amx" if processor(name).startswith("Intel") else "avx512bf16"


def loops_beside_products(name, kind):
    """By kernel: GFLOP/s of the products alone and of the whole loop on one thread, with all data in a cache, for a kind of
    processor."""
    rates = {one["run_name"]: 1e-9 * one["FLOP/s"] for one in raw(name)["benchmarks"]
             if one.get("aggregate_name") == "median" and "FLOP/s" in one}
    for loop in rates:
        kernel, found, *tokens = loop.split("/")
        if found == kind and tokens:
            yield kernel, rates[f"{kernel}-products/{kind}"], rates[loop]


@table("loops-linear")
def linear_loops_beside_products():
    yield ["GFLOP/s", "measured on", *(f"{what}, {kind}:" for kind in ("float32", "bfloat16")
                                       for what in ("products alone", "the loop", "share"))]
    rows = {}
    for name in LINEAR_LOOPS:
        for kind in ("avx512", kind_with_bfloat16(name)):
            for kernel, products, loop in loops_beside_products(name, kind):
                rows.setdefault(kernel, {}).setdefault(name, []).extend(
                    [f"{products:.0f}", f"{loop:.0f}", percent(loop / products, 0)])
    for kernel, of_files in rows.items():
        for place, (name, found) in enumerate(of_files.items()):
            yield [f"`{kernel}`" if place == 0 else "", measured_on([name]), *found]
