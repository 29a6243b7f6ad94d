"""What was to be reached in speed, and what has been, as a function of raw files (tools/results)."""
from speed_tables import (FAMILY_LENGTHS, PRODUCTS, WINDOW_GOALS, exponentials, family, few_tokens,
                          gains_of_threads, loops_beside_products, over_all, range_over_runs, starts)
from table_registry import percent, raw, table

NOT_MEASURED = "not measured"


def found_rows(names, titles, sizes, row):
    """A row of the cases with these titles and sizes (tokens, batch), as far as the raw files of tools/compare have it."""
    return [one for name in names for case in raw(name)["cases"]
            if case["case"] in titles and (case["tokens"], case["batch"]) in sizes
            for one in case["rows"] if one["row"] == row]


def inverse(row):
    return {"ratio": 1 / row["ratio"], "least": 1 / row["most"], "most": 1 / row["least"]}


def how_many(reached):
    """Of several measurements: all, none or how many reached the goal."""
    assert reached, "a goal without a measurement"
    return "yes" if all(reached) else f"{sum(reached)} of {len(reached)}" if any(reached) else "no"


def goal_row(what, least, measurements, limit, per_cent=False):
    """What, what it is to be at least, each measurement, whether it is reached, what limits it where it is not."""
    reached = how_many([row["ratio"] >= least for rows in measurements for row in rows])
    goal = percent(least, 0) if per_cent else f"{least} times"
    return [what, f"≥ {goal}", *(over_all(rows, per_cent) for rows in measurements), reached,
            "" if reached == "yes" else limit]


def time_of_reading(rows):
    return f"reading as many bytes alone takes {over_all(rows, True)} of the time" if rows else NOT_MEASURED


def gain_of_products(rows_of):
    """How many times as fast hedgehog's products alone are in bfloat16, where that was measured."""
    single, half = (rows_of(f"bound: its products at the machine's {dtype} rate") for dtype in ("float32", "bfloat16"))
    gains = [one["ratio"] / other["ratio"] for one, other in zip(single, half)]
    return f"its products alone: {min(gains):.2f} to {max(gains):.2f} times" if gains else NOT_MEASURED


def limit_of_loops():
    shares = [loop / products for _, products, loop in loops_beside_products("avx512")]
    return (f"what is not products: with all data in a cache, the [loops](measurements/cpu.md#beside-their-products) reach "
            f"{percent(min(shares), 0)} to {percent(max(shares), 0)} of their products' rate")


@table("goals")
def goals():
    """Shares of a bound and gains, in the first measurement and in the second where there is one."""
    kernels, models = ("compare-kernels", "compare-kernels-again"), ("compare-models", "compare-models-again")

    def rows_of(row, tokens=(1024, 4096, 32768), name=kernels[0]):
        return found_rows([name], ["hedgehog, 12 heads of 64"], [(n, 1) for n in tokens], row)

    yield ["what", "goal:", "measured:", "again:", "reached:", "what limits it"]
    for tokens, limit in (
            (4096, "exponentials and what keeps them in range: about "
                   f"{percent(exponentials()['of hedgehog, %'] / 100, 0)} of the time; the rest is not measured"),
            (32768, NOT_MEASURED)):
        yield goal_row(f"`hedgehog`, {tokens:,} tokens: share of the float32 rate of products", 0.75,
                       [rows_of("bound: its products at the machine's float32 rate", [tokens], name) for name in kernels],
                       limit, per_cent=True)
    yield goal_row("`hedgehog`, 1,024 to 32,768 tokens: bfloat16 beside float32", 1.8,
                   [[inverse(row) for row in rows_of("hedgehog, bfloat16", name=name)] for name in kernels],
                   gain_of_products(rows_of))
    shares, gains = family()
    own = [(kernel, tokens) for kernel, tokens in shares if kernel != "flash"]
    yield goal_row("nine kernels with features, Intel with AMX: share of the float32 rate of products", 0.75,
                   [[shares[one] for one in own], []], limit_of_loops(), per_cent=True)
    yield goal_row("`hedgehog`, Intel with AMX: bfloat16 beside float32", 1.8,
                   [[gains["hedgehog", tokens] for tokens in FAMILY_LENGTHS], []], NOT_MEASURED)
    yield goal_row("four kernels, 197 to 1,024 tokens: two threads beside one", 1.6,
                   [[gains_of_threads(*times) for times in few_tokens().values()], []], NOT_MEASURED)
    for tokens in (4096, 65536):
        triads, readings = ([found_rows([name], ["hydra-cosine, D = 768"], [(tokens, 1)], f"bound: {what} as many bytes")
                             for name in kernels] for what in ("a triad over", "reading"))
        yield goal_row(f"`hydra-cosine`, {tokens:,} tokens: share of a triad", 0.85, triads, time_of_reading(readings[0]),
                       per_cent=True)
    large = [found_rows([name], ["DeiT-B"], [(197, 32)], PRODUCTS) for name in models]
    attention = 1 - found_rows(models[:1], ["DeiT-B"], [(197, 32)], "bound: no attention")[0]["ratio"]
    yield goal_row("DeiT-B, batch of 32: share of the products' bound", 0.9, large,
                   f"attention takes {percent(attention, 0)} of the time, all else beside products "
                   f"{percent(1 - large[0][0]['ratio'] - attention, 0)}", per_cent=True)
    sizes = [(197, 1), (197, 32), (128, 1), (512, 1), (128, 32)]
    yield goal_row("DeiT-B and BERT-base: bfloat16 beside float32", 1.8,
                   [[inverse(row) for row in found_rows(names, ["DeiT-B", "BERT-base"], sizes, "flash, bfloat16")]
                    for names in ([models[0], "compare-bert"], models[1:])], NOT_MEASURED)
    runs = [raw(f"interact-{number}") for number in (1, 2, 3)]
    for key, what in (("first_frame_ms", "first frame"), ("first_result_ms", "first result"),
                      ("switch_last_layer_ms", "another kernel in the last layer")):
        reached = how_many([round(run[key]["median"]) <= WINDOW_GOALS[key] for run in [*runs, *starts()]])
        yield [f"window: {what}", f"≤ {WINDOW_GOALS[key]} ms",
               *(f"{range_over_runs(found, key, 'median')} ms" for found in (runs, starts())), reached,
               "" if reached == "yes" else "[the start](#the-window)" if key != "switch_last_layer_ms" else NOT_MEASURED]
