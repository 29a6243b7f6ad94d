"""Writes tests/golden/byte_pair: three byte-level tokenizers trained here, and what Hugging Face's tokenizers makes of texts.

    make_byte_pair.py [--smollm2 FOLDER]      FOLDER holds the bundled model's tokenizer.json

gpt2, smollm2 and llama3 have those models' pre-tokenizers, special tokens and options, and small vocabularies trained
on the generated lines (lines.py). Variants are JSON merge patches of their tokenizer.json: other splits, normalization
form C, spaces put before, unknown bytes.
"""

import argparse
import copy
import json
import pathlib
import struct

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import common
import generator_tables
import lines
from byte_pair_cases import BYTE_PAIR_CASES

FOLDER = common.GOLDEN / "byte_pair"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
CHOICES = [
    "don't", "DON'T", "we've", "They'Ll", "it's", "'s", "’s", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>",
    "<mask>", " <mask> ", "<right>", " <right>  ", "word", "words", "naïve", "nai\u0308ve", "<|endoftext|", "the", "attention",
    "running", "e.g.", "3.14", "1,000,000", "user@example.org", "C++", "A\u030angstro\u0308m", "İstanbul", "Straße", "½", "한국어",
    "한국어", "北京大学", "東京タワー", "हिन्दी", "العربية", "שָׁלוֹם", "Việt Nam", "q\u0323\u0307", "🇫🇷", "👨\u200d👩\u200d👧",
    "👍🏽", "❤\ufe0f", "a\u200bb", "a\u00a0b", "a\u2028b", "a\u0085b", "…", "“quoted”", "—", "\r", " \r\r ", "\t", "\t\t", "   ",
    "        ", "\u0000", "\ufffd", "__init__", "x[i]", "!=", "==", "//", "http://example.org/?q=1&r=2#top", "{}", "();",
]  # fmt: skip
BLOCK = 10  # lines to a hash
VARIANT_STEP = 5  # each fifth line suffices for a variant
CODE_POINTS = 1024  # code points to a hash
LAST_POINT = 0x3FFFF  # higher planes hold tags and private use


def write_generator():
    """lines.py's tables for this folder: the WordPiece lines' scripts, less noise, with other choices."""
    segments = []
    for name, weight, shortest, longest, ranges in generator_tables.SEGMENTS:
        weight = {"latin": 60, "digits": 12, "control": 1, "invisible": 2}.get(name, weight)
        segments.append({"name": name, "weight": weight, "min": shortest, "max": longest, "ranges": ranges})
    segments.append({"name": "choices", "weight": 30, "choices": CHOICES})
    rows = ",\n  ".join(common.compact(segment) for segment in segments)
    head = f'"seed": 20250207, "lines": 10000,\n "separators": {common.compact(generator_tables.SEPARATORS)}'
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "generator.json").write_text(f'{{{head},\n "segments": [\n  {rows}\n ]}}\n', encoding="utf-8")


def english():
    """Texts that merges come from."""
    sentences = (common.GOLDEN.parents[1] / "assets" / "sentences.txt").read_text(encoding="utf-8").split("\n")
    return [*sentences, *BYTE_PAIR_CASES, *("  " * n + "if x:\n" for n in range(8))] * 3


def train(tokenizer, special, texts, size, alphabet):
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False, min_frequency=2
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def make_gpt2(texts):
    """GPT-2's: ByteLevel with its regular expression, one special token, merges as texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return train(tokenizer, ["<|endoftext|>"], texts, 620, pre_tokenizers.ByteLevel.alphabet())


def make_smollm2(texts):
    """SmolLM2's: single digits, then ByteLevel; bytes that no text held are missing; tokens that swallow white space."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], texts, 600, [])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("<right>", rstrip=True, normalized=False)])
    return tokenizer


def make_llama3(texts):
    """Llama 3's: its Split, then ByteLevel alone; ignore_merges; a template that puts a token before the text."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, [], texts, 600, pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    words = [AddedToken(name, single_word=True, normalized=False) for name in ("word", "word<x>")]
    tokenizer.add_tokens([*words, AddedToken("<x>", normalized=False), AddedToken("naïve", normalized=True)])
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    template = processors.TemplateProcessing(
        single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B:1", special_tokens=[("<|begin_of_text|>", begin)]
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
    return tokenizer


def settings_of(tokenizer, name):
    """tokenizer.json as the program gets it: merges as texts for gpt2 (the older way), as pairs for the others."""
    value = json.loads(tokenizer.to_str())
    if name == "gpt2":
        value["model"]["merges"] = [" ".join(pair) for pair in value["model"]["merges"]]
    if name == "llama3":
        # A whole token that no merges make, which ignore_merges alone finds, and one that is no text at all.
        size = max(value["model"]["vocab"].values()) + 1
        for token in value["added_tokens"]:
            token["id"] += 2 * (token["id"] >= size)
        for special in value["post_processor"]["processors"][1]["special_tokens"].values():
            special["ids"] = [index + 2 for index in special["ids"]]
        value["model"]["vocab"] |= {"Ġkeyword": size, "北 京": size + 1}
    return value


def patched(value, patch):
    """RFC 7396, as nlohmann::json::merge_patch does it."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(value) if isinstance(value, dict) else {}
    for key, part in patch.items():
        if part is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), part)
    return result


def split(pattern, behavior, invert=False):
    kind = "String" if len(pattern) == 1 else "Regex"
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def variants():
    plain = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    spaced = plain | {"add_prefix_space": True}
    yield "gpt2", {"pre_tokenizer": {"add_prefix_space": True}}
    yield "gpt2", {"pre_tokenizer": {"use_regex": False}}
    yield "gpt2", {"pre_tokenizer": spaced}
    qwen2 = sequence(split(QWEN2, "Isolated"), plain)
    yield "llama3", {"normalizer": {"type": "NFC"}, "pre_tokenizer": qwen2, "model": {"ignore_merges": False}}
    yield "llama3", {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}, "post_processor": None}
    yield "smollm2", {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": False}, spaced)}
    yield "smollm2", {"model": {"unk_token": "<|endoftext|>"}}
    yield "smollm2", {"model": {"unk_token": "<|endoftext|>", "fuse_unk": True}}
    for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield "gpt2", {"pre_tokenizer": sequence(split("a", behavior, invert), split(r"\p{P}|[er]", behavior, invert), plain)}
    yield "gpt2", {"pre_tokenizer": sequence(split(r"x*", "Isolated"), split(" ", "MergedWithNext"), plain)}
    yield "gpt2", {"pre_tokenizer": sequence(split(r"(?<=[aeiou])n|t(?=h)|\S{3,}?(?!\d)", "Isolated"), plain)}
    # DeepSeek's kind: several splits, with categories of marks, punctuation and symbols.
    deepseek = r"[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    steps = split(r"\p{N}{1,3}", "Isolated"), split("[一-龥぀-ゟ゠-ヿ]+", "Isolated"), split(deepseek, "Isolated")
    yield "llama3", {"pre_tokenizer": sequence(*steps, plain)}
    # GPT-4o's kind: words by case.
    case = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|\s+"
    yield "llama3", {"pre_tokenizer": sequence(split(case, "Isolated"), plain)}


def piece_sizes(tokenizer, text):
    """The bytes of each piece: ByteLevel writes a byte as a character."""
    return [len(piece) for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]


def answers(tokenizer, text):
    return [*tokenizer.encode(text).ids, 0xFFFFFFFF, *piece_sizes(tokenizer, text)]


def answer_hashes(tokenizer, all_lines):
    """A 32-bit FNV-1a for each block of lines: of all ids, a mark and all pieces' sizes."""
    blocks = [all_lines[at : at + BLOCK] for at in range(0, len(all_lines), BLOCK)]
    rows = [[number for line in block for number in answers(tokenizer, line)] for block in blocks]
    return struct.pack(f"<{len(rows)}I", *map(lines.hash_ids, rows))


def code_point_hashes(tokenizer):
    """The same for blocks of code points, each between a letter, a digit and a space: the pieces' sizes alone."""
    rows = []
    for first in range(0, LAST_POINT, CODE_POINTS):
        points = [chr(point) for point in range(first, first + CODE_POINTS) if not 0xD800 <= point < 0xE000]
        rows.append(piece_sizes(tokenizer, "".join(f"a{point}1{point} {point}\n" for point in points)))
    return struct.pack(f"<{len(rows)}I", *map(lines.hash_ids, rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smollm2", type=pathlib.Path)
    bundled = parser.parse_args().smollm2
    write_generator()
    generated = lines.generate(FOLDER / "generator.json")
    everything = BYTE_PAIR_CASES + generated
    texts = generated[:3000] + english()
    settings, tokenizers = {}, {}
    for name, make in (("gpt2", make_gpt2), ("smollm2", make_smollm2), ("llama3", make_llama3)):
        value = settings_of(make(texts), name)
        folder = FOLDER / name
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_text(common.compact(value) + "\n", encoding="ascii")
        settings[name], tokenizers[name] = value, Tokenizer.from_str(json.dumps(value))
        (folder / "expected.fnv").write_bytes(answer_hashes(tokenizers[name], everything))
        (folder / "codepoints.fnv").write_bytes(code_point_hashes(tokenizers[name]))
        print(f"{name}: {tokenizers[name].get_vocab_size()} tokens, {len(value['model']['merges'])} merges")
    if bundled:
        (FOLDER / "bundled").mkdir(exist_ok=True)
        hashes = answer_hashes(Tokenizer.from_file(str(bundled / "tokenizer.json")), everything)
        (FOLDER / "bundled" / "expected.fnv").write_bytes(hashes)
    rows = []
    for case in BYTE_PAIR_CASES:
        row = {"text": case} | {name: tokenizer.encode(case).ids for name, tokenizer in tokenizers.items()}
        rows.append(common.compact(row))
    (FOLDER / "explicit.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
    whole = "\n".join(generated).encode()
    summary = {"lines": len(generated), "bytes": len(whole), "fnv64": f"{lines.fnv64(whole):016x}", "variants": []}
    for name, patch in variants():
        changed = Tokenizer.from_str(json.dumps(patched(settings[name], patch)))
        hashes = answer_hashes(changed, everything[::VARIANT_STEP])
        assert hashes != answer_hashes(tokenizers[name], everything[::VARIANT_STEP]), patch
        summary["variants"].append({"of": name, "patch": patch, "fnv64": f"{lines.fnv64(hashes):016x}"})
    rows = ",\n  ".join(common.compact(variant) for variant in summary.pop("variants"))
    head = json.dumps(summary)[1:-1]
    (FOLDER / "summary.json").write_text(f'{{{head}, "variants": [\n  {rows}\n ]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
