"""Writes tests/golden/rouge.json: pairs of texts and their scores by PyPI's rouge-score, without stemming."""

import json

from rouge_score import rouge_scorer

import common

NAMES = ("rouge1", "rouge2", "rougeL")
WORDS = "the cat sat on a mat while Hannah baked two cookies for Amanda and Jerry at 7:30 it's 1,024 tokens".split()
PAIRS = [
    ("the cat sat on the mat", "the cat sat on the mat"),
    ("the cat sat on the mat", "a dog lay under the table"),
    ("Amanda baked cookies and will bring Jerry some tomorrow.", "Amanda baked cookies. She'll bring Jerry some."),
    ("the the the the", "the cat the"),
    ("one", "one"),
    ("one", "two"),
    ("", "something"),
    ("something", ""),
    ("", ""),
    ("... --- !!!", "words"),
    ("e-mail: A.B@example.org, 3.14", "E mail a b example org 3 14"),
    ("Zürich naïve café", "zurich naive cafe"),
    ("line one\nline two\ttabbed", "line two line one tabbed"),
]


def random_pairs(count):
    rng = common.generator("rouge")
    for _ in range(count):
        yield tuple(" ".join(rng.choice(WORDS, rng.integers(1, 40))) for _ in range(2))


def main():
    scorer = rouge_scorer.RougeScorer(NAMES, use_stemmer=False)
    cases = []
    for answer, reference in [*PAIRS, *random_pairs(20)]:
        scores = scorer.score(reference, answer)
        cases.append({"answer": answer, "reference": reference} | {name: scores[name].fmeasure for name in NAMES})
    text = json.dumps(cases, indent=1, ensure_ascii=False)
    (common.GOLDEN / "rouge.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
