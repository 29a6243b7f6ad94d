"""The tables of GLUE as tools/glue reads them: where each task's examples are, and what it measures."""
import collections

# A table: files, its columns of label, text and second text (names in its header, or numbers from 1 if it has none).
Table = collections.namedtuple("Table", "files label text pair", defaults=[None])
# `layouts`: pairs of a table to train on and one to report on, of which the first that exists is taken. `measures`: those
# of GLUE. `skill`: the one by which a kernel recovers softmax: a constant answer has none of it (Matthews, Spearman), or
# a share that the labels tell (accuracy). F1 has such a share, too, but of MRPC it is 79.9 of a fine-tuned model's 85, and
# a kernel's noise would be divided by the little between.
Task = collections.namedtuple("Task", "name measures skill layouts")
SENTENCES = ("sentence1", "sentence2")


def one_folder(folder, label, text, pair=None, dev="dev.tsv"):
    return Table([f"{folder}/train.tsv"], label, text, pair), Table([f"{folder}/{dev}"], label, text, pair)


MSR = ("Quality", "#1 String", "#2 String")
TASKS = {
    "cola": Task("CoLA", ["matthews"], "matthews",
                 [one_folder("CoLA", 2, 4), (Table(["cola_in_domain_train.tsv"], 2, 4),
                                             Table(["cola_in_domain_dev.tsv", "cola_out_of_domain_dev.tsv"], 2, 4))]),
    "sst2": Task("SST-2", ["accuracy"], "accuracy",
                 [one_folder("SST-2", "label", "sentence"), (Table(["sst2_train.tsv"], 2, 1), Table(["sst2_dev.tsv"], 2, 1))]),
    "mrpc": Task("MRPC", ["f1", "accuracy"], "matthews",
                 [one_folder("MRPC", *MSR),
                  (Table(["MRPC/msr_paraphrase_train.txt"], *MSR), Table(["MRPC/msr_paraphrase_test.txt"], *MSR)),
                  (Table(["mrpc_train.tsv"], *MSR), Table(["mrpc_test.tsv"], *MSR))]),
    "stsb": Task("STS-B", ["pearson", "spearman"], "spearman", [one_folder("STS-B", "score", *SENTENCES)]),
    "qqp": Task("QQP", ["f1", "accuracy"], "matthews", [one_folder("QQP", "is_duplicate", "question1", "question2")]),
    "mnli": Task("MNLI", ["accuracy"], "accuracy", [one_folder("MNLI", "gold_label", *SENTENCES, dev="dev_matched.tsv")]),
    "qnli": Task("QNLI", ["accuracy"], "accuracy", [one_folder("QNLI", "label", "question", "sentence")]),
    "rte": Task("RTE", ["accuracy"], "accuracy", [one_folder("RTE", "label", *SENTENCES)]),
}


def read_table(folder, table, limit):
    """(label, text, second text) of each line that has all, and how many lines have not."""
    rows, broken = [], 0
    for file in table.files:
        try:
            lines = (folder / file).read_bytes().decode("utf-8-sig").replace("\r\n", "\n").split("\n")
        except UnicodeDecodeError as error:
            raise SystemExit(f"error: {folder / file}: is not UTF-8 ({error}); convert it") from None
        columns = [one for one in (table.label, table.text, table.pair) if one is not None]
        if isinstance(table.label, str):
            header = lines.pop(0).split("\t")
            missing = [one for one in columns if one not in header]
            if missing:
                raise SystemExit(f"error: {folder / file}: its header names no column {', '.join(missing)}")
            columns = [header.index(one) for one in columns]
        else:
            columns = [one - 1 for one in columns]
        for line in filter(None, lines):
            cells = line.split("\t")
            if len(cells) <= max(columns) or not all(cells[one].strip() for one in columns):
                broken += 1
                continue
            rows.append([cells[one] for one in columns])
            if limit and len(rows) >= limit:
                return rows, broken
    return rows, broken
