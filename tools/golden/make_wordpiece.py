"""Writes tests/golden/wordpiece: two vocabularies, the expected ids of 10,000 generated lines, explicit cases.

The reference is transformers' BertTokenizer (the tokenizers library). Literals like [SEP] inside the text are matched
there as special tokens before anything else, and that is what is expected here.

    make_wordpiece.py [--minilm FOLDER]      FOLDER holds the MiniLM tokenizer.json
"""

import argparse
import collections
import pathlib
import struct

from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from transformers import AutoTokenizer, BertTokenizer

import common
import lines
from edge_cases import EDGE_CASES

FOLDER = common.GOLDEN / "wordpiece"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the a of to and in is it on not attention hydra hedgehog running naive angstrom over token head".split()


def words_of(all_lines, lowercase):
    """Every pre-token of the lines after BERT's normaliser, with its count."""
    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    splitter, counts = pre_tokenizers.BertPreTokenizer(), collections.Counter()
    for line in all_lines:
        counts.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(line)))
    return counts


def build_vocabulary(all_lines, lowercase, pieces=220):
    """Special tokens, the characters that occur (one in 40 left out, for [UNK]), frequent beginnings and pieces."""
    counts = words_of(all_lines, lowercase)
    first, later, starts, inner = set(), set(), collections.Counter(), collections.Counter()
    for word, count in counts.items():
        first.add(word[0])
        later.update(word[1:])
        for size in (2, 3, 4, 5):
            starts[word[:size]] += count * (len(word) >= size)
            for begin in range(1, len(word) - size + 1):
                inner[word[begin : begin + size]] += count

    def top(counter):
        return [piece for piece, _ in sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:pieces]]

    def keep(characters):
        return [character for character in sorted(characters) if ord(character) < 128 or ord(character) % 40 != 7]

    tokens = SPECIAL + keep(first) + ["##" + character for character in keep(later)] + WORDS
    tokens += top(starts) + ["##" + piece for piece in top(inner)]
    return list(dict.fromkeys(tokens))


def write_vocabulary(name, tokens, lowercase):
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8", newline="\n")
    config = {"do_lower_case": lowercase, "model_max_length": 512, "tokenizer_class": "BertTokenizer"}
    common.write_json(folder / "tokenizer_config.json", config)
    return folder


def plain_tokenizer(vocabulary, **options):
    """The same tokenizer put together by hand from the tokenizers library."""
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, **options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def encode(tokenizer, line):
    """The ids of a line as `hydrascope tokenize` gives them: a tab separates a pair, nothing is cut or padded."""
    text, tab, pair = line.partition("\t")
    return tokenizer.encode(text, pair if tab else None).ids


def unlimited(tokenizer):
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def write_hashes(folder, all_ids):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "expected.fnv").write_bytes(struct.pack(f"<{len(all_ids)}I", *map(lines.hash_ids, all_ids)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minilm", type=pathlib.Path)
    minilm = parser.parse_args().minilm
    generated = lines.generate(FOLDER / "generator.json")
    explicit = EDGE_CASES + generated[:100]
    sets, variants = {}, {}
    for name, lowercase in (("uncased", True), ("cased", False)):
        folder = write_vocabulary(name, build_vocabulary(generated + EDGE_CASES, lowercase), lowercase)
        reference = BertTokenizer.from_pretrained(folder)
        vocabulary = {token: index for index, token in enumerate((folder / "vocab.txt").read_text("utf-8").split("\n"))}
        del vocabulary[""]
        assert reference.get_vocab() == vocabulary and reference.do_lower_case == lowercase
        default = {"handle_chinese_chars": True, "strip_accents": None, "lowercase": lowercase}
        plain = plain_tokenizer(vocabulary, **default)
        sets[name] = unlimited(reference._tokenizer)
        ids = [encode(sets[name], line) for line in generated]
        assert ids == [encode(plain, line) for line in generated]
        write_hashes(folder, ids)
        unknown = sum(id == 1 for row in ids for id in row) / sum(map(len, ids))
        print(f"{name}: {len(vocabulary)} entries, {sum(map(len, ids))} ids, {unknown:.1%} [UNK]")
        for option, value in (("strip_accents", True), ("strip_accents", False), ("handle_chinese_chars", False)):
            changed = plain_tokenizer(vocabulary, **default | {option: value})
            everything = b"".join(struct.pack("<I", lines.hash_ids(encode(changed, line))) for line in generated)
            key = option.replace("handle", "tokenize")
            variants.setdefault(name, []).append({key: value, "fnv64": f"{lines.fnv64(everything):016x}"})
    if minilm:
        sets["minilm"] = unlimited(AutoTokenizer.from_pretrained(minilm)._tokenizer)
        ids = [encode(sets["minilm"], line) for line in generated]
        plain = unlimited(Tokenizer.from_file(str(minilm / "tokenizer.json")))
        assert ids == [encode(plain, line) for line in generated]
        write_hashes(FOLDER / "minilm", ids)
        print(f"minilm: {sum(map(len, ids))} ids, {sum(row.count(100) for row in ids)} [UNK]")
    rows = []
    for line in explicit:
        text, tab, pair = line.partition("\t")
        row = {"text": text} | ({"pair": pair} if tab else {})
        rows.append(common.compact(row | {name: encode(tokenizer, line) for name, tokenizer in sets.items()}))
    (FOLDER / "explicit.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
    whole = "\n".join(generated).encode()
    summary = {"lines": len(generated), "bytes": len(whole), "fnv64": f"{lines.fnv64(whole):016x}"}
    summary["variants"] = variants
    common.write_json(FOLDER / "summary.json", summary)


if __name__ == "__main__":
    main()
