"""What was to be reached in speed, and what has been, as a function of raw files (tools/results)."""
import operator
import statistics

from compare_tables import (ALL_KERNELS, BERT, DEIT, HEDGEHOG, HYDRA, KERNELS_ZEN5, LOOP_ALONE, MODELS, PRESENT_HYDRA,
                            PRODUCTS, ROWS_ALONE, TRIAD, by_processor, over_all, processor, ratio_text, rows_of,
                            shares_of_time)
from speed_tables import (FAMILY, FAMILY_LENGTHS, FEW_TOKENS, FEW_TOKENS_ALONE, FEW_TOKENS_BESIDE, LINEAR_LOOPS, STARTS,
                          WINDOW_GOALS, WINDOW_RUNS, family, few_tokens, gains_of_threads, kind_with_bfloat16,
                          loops_beside_products, range_over_runs)
from table_registry import percent, raw, smallest_to_largest, table

INTEL, ZEN5, ZEN4 = PROCESSORS = ("Intel Xeon", "AMD EPYC (Zen 5)", "AMD EPYC (Zen 4)")


def found_rows(names, cases, tokens, row, batches=(1,)):
    """A row of raw files of tools/compare, of each case, number of tokens and batch that they have."""
    return [found for (case, n, batch, title), found in rows_of(names).items()
            if case in cases and n in tokens and batch in batches and title == row]


def inverse(row):
    return {"ratio": 1 / row["ratio"], "least": 1 / row["most"], "most": 1 / row["least"]}


def how_many(reached):
    """Of several measurements: all, none or how many reached the goal."""
    assert reached, "a goal without a measurement"
    return "yes" if all(reached) else f"{sum(reached)} of {len(reached)}" if any(reached) else "no"


def goal_row(what, least, found, limit=None, per_cent=False):
    """What, what it is to be at least, what was found on each processor, whether it is reached, what limits it where it is
    not. found: {processor: rows}."""
    assert found.keys() <= set(PROCESSORS), f"{what}: {found.keys()} have no column"
    reached = how_many([round(row["ratio"], 2) >= least for rows in found.values() for row in rows])  # as it is shown
    assert limit or reached == "yes", f"{what}: missed, and nothing tells what limits it"
    goal = percent(least, 0) if per_cent else f"{least} times"
    return [what, f"≥ {goal}", *(over_all(found.get(name, []), per_cent) for name in PROCESSORS), reached,
            "" if reached == "yes" else limit]


def on_each(values, text, unit):
    """{processor: values} in words: the smallest to the largest, where there are any."""
    short = {INTEL: "Intel", ZEN5: "Zen 5", ZEN4: "Zen 4"}
    return ", ".join(f"{smallest_to_largest(found, text)} {unit} ({short[name]})" for name, found in values.items() if found)


def percents(values):
    return on_each(values, lambda share: f"{100 * share:.0f}", "%")


def times(values):
    return on_each(values, lambda gain: f"{gain:.1f}", "times")


def limit_of_loops(which, kernels):
    """What share of the float32 rate kernels would reach if they took the time of their loops, with all data in a cache, and
    then that of a triad over their rows' bytes; of these kernels, or of all whose loops were measured."""
    shares = {}
    for name, of_loops in zip(FAMILY, LINEAR_LOOPS, strict=True):
        measured = [one for number in range(1, 6) for one in raw(f"{name}-{number}")
                    if one["dtype"] == "float32" and "skipped" not in one]
        machine = 1e-9 * statistics.median(one["matrix_flops_per_second"] for one in measured)
        for kernel, _, loop in loops_beside_products(of_loops, "avx512"):
            for tokens in FAMILY_LENGTHS if not kernels or kernel in kernels else ():
                moved, products = (statistics.median(one[share] for one in measured
                                                     if (one["kernel"], one["N"]) == (kernel, tokens))
                                   for share in ("share_of_bandwidth", "share_of_flops"))
                # In units of the products' time at the machine's rate.
                shares.setdefault(processor(of_loops), []).append(1 / (machine / (2 * loop) + moved / products))
    return (f"features and memory: [{which}](measurements/cpu.md#beside-their-products), with all data in a cache, and then a "
            f"triad over its rows would reach {percents(shares)}")


def gain_of_loops():
    """How many times as fast loops are in bfloat16, with all data in a cache."""
    gains = {}
    for name in LINEAR_LOOPS:
        single, half = ({kernel: loop for kernel, _, loop in loops_beside_products(name, kind)}
                        for kind in ("avx512", kind_with_bfloat16(name)))
        gains.setdefault(processor(name), []).extend(half[kernel] / single[kernel] for kernel in single)
    return ("features, which stay in float32: with all data in a cache, [the loops](measurements/cpu.md#beside-their-products) "
            f"gain {times(gains)}; on Intel of six loops")


def gain_of_products(tokens):
    """How many times as fast hedgehog's products alone are in bfloat16."""
    def gains(name):
        single, half = (found_rows([name], [HEDGEHOG], tokens, f"bound: its products at the machine's {dtype} rate")
                        for dtype in ("float32", "bfloat16"))
        return [one["ratio"] / other["ratio"] for one, other in zip(single, half)]  # the oldest have no half

    return f"its products alone gain {times(by_processor(ALL_KERNELS, gains))}; features stay in float32"


def limit_of_hydra(tokens):
    """What its rows alone and its loop without the program take, in the same turns, on AMD's processors."""
    rows, loop = ([f"{over_all(found_rows(names, [HYDRA], [tokens], title)[:1], True)} ({which})"
                   for names, which in ((PRESENT_HYDRA, "Zen 4"), (KERNELS_ZEN5, "Zen 5"))]
                  for title in (ROWS_ALONE, LOOP_ALONE))
    return (f"memory: in the same turns [reading and writing its rows alone](measurements/cpu.md#hydra-beside-memory) takes "
            f"{' and '.join(rows)} of its time, its loop without the program {' and '.join(loop)}")


FEW_TOKENS_GOAL = 1.6


def limit_of_threads():
    """What two runs give beside which no program of ours ran, and beside which one kept a processor busy."""
    alone, beside = ([gains_of_threads(*found)["ratio"] for found in few_tokens(name).values()]
                     for name in (FEW_TOKENS_ALONE, FEW_TOKENS_BESIDE))
    assert all(round(gain, 2) >= FEW_TOKENS_GOAL for gain in alone)
    return (f"other work on the machine: a run on Zen 4 beside which no program of ours ran reaches it in all {len(alone)} cases "
            f"({smallest_to_largest(alone, ratio_text)}); beside a program that keeps one processor busy two threads are "
            f"{smallest_to_largest(beside, ratio_text)} times as fast")


def goals_of_kernels():
    for tokens in (4096, 32768):
        yield goal_row(f"`hedgehog`, {tokens:,} tokens: share of the float32 rate of matrix products", 0.75,
                       by_processor(ALL_KERNELS, lambda name: found_rows(
                           [name], [HEDGEHOG], [tokens], "bound: its products at the machine's float32 rate")),
                       limit_of_loops("its loop", ["hedgehog"]), per_cent=True)
    lengths = (1024, 4096, 32768)
    yield goal_row("`hedgehog`, 1,024 to 32,768 tokens: bfloat16 beside float32", 1.8,
                   by_processor(ALL_KERNELS, lambda name: [
                       inverse(row) for row in found_rows([name], [HEDGEHOG], lengths, "hedgehog, bfloat16")]),
                   gain_of_products(lengths))

    def own(which):
        return by_processor(FAMILY, lambda name: [row for (kernel, _), row in family(name)[which].items() if kernel != "flash"],
                            lambda name: f"{name}-1")

    yield goal_row("nine kernels with features, 4,096 and 32,768 tokens: share of the float32 rate", 0.75, own(0),
                   limit_of_loops("each loop", []) + "; on Intel of six loops", per_cent=True)
    yield goal_row("… bfloat16 beside float32", 1.8, own(1), gain_of_loops())
    yield goal_row("four kernels, 197 to 1,024 tokens: two threads beside one", FEW_TOKENS_GOAL,
                   by_processor(FEW_TOKENS, lambda name: [gains_of_threads(*found) for found in few_tokens(name).values()],
                                lambda name: f"{name}-1-1"),
                   limit_of_threads())
    # On AMD's processors of the present loops alone.
    hydra_runs = [name for name in ALL_KERNELS if processor(name) == INTEL or name in (*PRESENT_HYDRA, *KERNELS_ZEN5)]
    for tokens in (4096, 65536):
        yield goal_row(f"`hydra-cosine`, {tokens:,} tokens: a triad over as many bytes, share of the time", 0.85,
                       by_processor(hydra_runs, lambda name: found_rows([name], [HYDRA], [tokens], TRIAD)),
                       limit_of_hydra(tokens), per_cent=True)


def goals_of_models():
    first = operator.itemgetter(0)
    shares = by_processor(MODELS, lambda names: found_rows(names, [DEIT], [197], PRODUCTS, [32]), first)
    _, attention, rest = shares_of_time({title: row["ratio"] for (case, _, batch, title), row in rows_of(MODELS[-1]).items()
                                         if (case, batch) == (DEIT, 32)})
    yield goal_row("DeiT-B, batch of 32: share of the products' bound", 0.9, shares,
                   f"attention takes {percent(attention, 0)} of the time, all else beside products {percent(rest, 0)} (Intel)",
                   per_cent=True)
    yield goal_row("DeiT-B and BERT-base: bfloat16 beside float32", 1.8,
                   by_processor(MODELS, lambda names: [
                       inverse(row) for row in found_rows(names, [DEIT, BERT], [128, 197, 512], "flash, bfloat16", [1, 32])], first))


def goals_of_the_window():
    runs = by_processor((*WINDOW_RUNS, *STARTS), lambda name: [raw(name)])

    def zen4(key):
        return f"{range_over_runs(runs[ZEN4], key, 'median')} ms"

    for key, what, limit in (
            ("first_frame_ms", "first frame",
             f"{zen4('started_ms')} pass before the program's own code, {zen4('first_frame_total_ms')} in the frame"),
            ("first_result_ms", "first result", f"of the run, loading takes {zen4('first_run_preparing_ms')}, layers "
                                                f"{zen4('first_run_layers_ms')}"),
            ("switch_last_layer_ms", "another kernel in the last layer",
             f"the run takes {zen4('switch_last_run_ms')}, the frame that shows it {zen4('switch_last_frame_ms')}")):
        reached = how_many([round(run[key]["median"]) <= WINDOW_GOALS[key] for found in runs.values() for run in found])
        yield [f"[window](#the-window): {what}", f"≤ {WINDOW_GOALS[key]} ms",
               *(f"{range_over_runs(runs[name], key, 'median')} ms" for name in PROCESSORS), reached,
               "" if reached == "yes" else f"{limit} (Zen 4)"]


@table("goals")
def goals():
    """Shares of a bound and gains, over all runs on a processor."""
    yield ["what", "goal:", *(f"{name}:" for name in PROCESSORS), "reached:", "what limits it"]
    yield from goals_of_kernels()
    yield from goals_of_models()
    yield from goals_of_the_window()
