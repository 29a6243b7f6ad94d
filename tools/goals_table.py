"""What was to be reached in speed, and what has been, as a function of raw files (tools/results)."""
import statistics

from compare_tables import (BERT, DEIT, HEDGEHOG, HYDRA, KERNELS, MODELS, PRODUCTS, PUBLISHED_KERNELS, over_all,
                            rows_of, shares_of_time)
from speed_tables import (FAMILY, FAMILY_LENGTHS, FEW_TOKENS, LINEAR_LOOPS, WINDOW_GOALS, family, few_tokens, gains_of_threads,
                          loops_beside_products, range_over_runs, starts)
from table_registry import percent, raw, smallest_to_largest, table


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


def goal_row(what, least, measurements, limit=None, per_cent=False):
    """What, what it is to be at least, each measurement, whether it is reached, what limits it where it is not."""
    reached = how_many([row["ratio"] >= least for rows in measurements for row in rows])
    assert limit or reached == "yes", f"{what}: missed, and nothing tells what limits it"
    goal = percent(least, 0) if per_cent else f"{least} times"
    return [what, f"≥ {goal}", *(over_all(rows, per_cent) for rows in measurements), reached,
            "" if reached == "yes" else limit]


def gain_of_products(tokens):
    """How many times as fast hedgehog's products alone are in bfloat16."""
    single, half = (found_rows([PUBLISHED_KERNELS], [HEDGEHOG], tokens, f"bound: its products at the machine's {dtype} rate")
                    for dtype in ("float32", "bfloat16"))
    gains = [one["ratio"] / other["ratio"] for one, other in zip(single, half, strict=True)]
    return f"its products alone gain {min(gains):.1f} to {max(gains):.1f} times; what else it does stays in float32"


def limit_of_loops(which, kernels, lengths):
    """What share of the machine's float32 rate twice the rate of a loop on one thread is, with all data in a cache, and what
    share of the time memory's rate takes; of these kernels, or of all whose loops were measured, at these lengths."""
    rates, times = [], []
    for name, of_loops in zip(FAMILY, LINEAR_LOOPS, strict=True):
        measured = [one for number in range(1, 6) for one in raw(f"{name}-{number}")
                    if one["dtype"] == "float32" and "skipped" not in one]
        loops = {kernel: loop for kernel, _, loop in loops_beside_products(of_loops, "avx512")
                 if not kernels or kernel in kernels}
        machine = 1e-9 * statistics.median(one["matrix_flops_per_second"] for one in measured)
        rates += [2 * loop / machine for loop in loops.values()]
        times += [one["share_of_bandwidth"] for one in measured if one["kernel"] in loops and one["N"] in lengths]
    return (f"features: twice the one-thread rate of [{which}](measurements/cpu.md#beside-their-products), with all data in a "
            f"cache, is {percents(rates)}; memory: a triad over the rows' bytes takes {percents(times)} of the time")


def percents(shares):
    """The smallest to the largest."""
    return smallest_to_largest(shares, lambda share: f"{100 * share:.0f}") + " %"


def gain_of_loops():
    """How many times as fast loops are in bfloat16, with all data in a cache."""
    gains = []
    for name in LINEAR_LOOPS:
        single, half = ({kernel: loop for kernel, _, loop in loops_beside_products(name, kind)} for kind in ("avx512", "amx"))
        gains += [half[kernel] / single[kernel] for kernel in single]
    return ("features, which stay in float32: with all data in a cache, [the loops of six]"
            f"(measurements/cpu.md#beside-their-products) gain {min(gains):.1f} to {max(gains):.1f} times")


def goals_of_kernels():
    for tokens in (4096, 32768):
        yield goal_row(f"`hedgehog`, {tokens:,} tokens: share of the float32 rate of products", 0.75,
                       [found_rows([name], [HEDGEHOG], [tokens], "bound: its products at the machine's float32 rate")
                        for name in KERNELS], limit_of_loops("its loop", ["hedgehog"], [tokens]), per_cent=True)
    lengths = (1024, 4096, 32768)
    yield goal_row("`hedgehog`, 1,024 to 32,768 tokens: bfloat16 beside float32", 1.8,
                   [[inverse(row) for row in found_rows([name], [HEDGEHOG], lengths, "hedgehog, bfloat16")]
                    for name in KERNELS],
                   gain_of_products(lengths))
    shares, gains = zip(*(family(name) for name in FAMILY), strict=True)
    own = [(kernel, tokens) for kernel, tokens in shares[0] if kernel != "flash"]
    yield goal_row("nine kernels with features: share of the float32 rate of products", 0.75,
                   [[of_date[case] for case in own] for of_date in shares],
                   limit_of_loops("the loops of six", [], FAMILY_LENGTHS), per_cent=True)
    yield goal_row("… bfloat16 beside float32", 1.8, [[of_date[case] for case in own] for of_date in gains],
                   gain_of_loops())
    yield goal_row("four kernels, 197 to 1,024 tokens: two threads beside one", 1.6,
                   [[gains_of_threads(*times) for times in few_tokens(name).values()] for name in FEW_TOKENS])
    for tokens in (4096, 65536):
        triads, readings = ([found_rows([name], [HYDRA], [tokens], f"bound: {what} as many bytes") for name in KERNELS]
                            for what in ("a triad over", "reading"))
        yield goal_row(f"`hydra-cosine`, {tokens:,} tokens: share of a triad", 0.85, triads,
                       f"reading as many bytes alone takes {over_all(readings[-1], True)} of the time", per_cent=True)


def goals_of_models():
    shares = [found_rows(names, [DEIT], [197], PRODUCTS, [32]) for names in MODELS]
    _, attention, rest = shares_of_time({title: row["ratio"] for (case, _, batch, title), row in rows_of(MODELS[-1]).items()
                                         if (case, batch) == (DEIT, 32)})
    yield goal_row("DeiT-B, batch of 32: share of the products' bound", 0.9, shares,
                   f"attention takes {percent(attention, 0)} of the time, all else beside products {percent(rest, 0)}",
                   per_cent=True)
    yield goal_row("DeiT-B and BERT-base: bfloat16 beside float32", 1.8,
                   [[inverse(row) for row in found_rows(names, [DEIT, BERT], [128, 197, 512], "flash, bfloat16", [1, 32])]
                    for names in MODELS])


def goals_of_the_window():
    runs = [raw(f"interact-{number}") for number in (1, 2, 3)]
    for key, what in (("first_frame_ms", "first frame"), ("first_result_ms", "first result"),
                      ("switch_last_layer_ms", "another kernel in the last layer")):
        reached = how_many([round(run[key]["median"]) <= WINDOW_GOALS[key] for run in [*runs, *starts()]])
        yield [f"window: {what}", f"≤ {WINDOW_GOALS[key]} ms",
               *(f"{range_over_runs(found, key, 'median')} ms" for found in (runs, starts())), reached,
               "" if reached == "yes" else "[what it waits for](#the-window)"]


@table("goals")
def goals():
    """Shares of a bound and gains, each on two dates."""
    yield ["what", "goal:", "measured:", "again:", "reached:", "what limits it"]
    yield from goals_of_kernels()
    yield from goals_of_models()
    yield from goals_of_the_window()
