"""Compares `hydrascope tokenize` with Hugging Face's tokenizers on 10,000 generated lines, the explicit cases and texts.

    compare_byte_pair.py PROGRAM [--checkpoint FOLDER ...] [--gpt2 FOLDER] [--llama3 FILE] [--text FILE ...] [--seed n] [--write FILE]

The three tokenizers of tests/golden/byte_pair are tried, and:
  --checkpoint  folders with a tokenizer.json (say .deps/models/smollm2)
  --gpt2        a folder with GPT-2's vocab.json and merges.txt, or encoder.json and vocab.bpe as OpenAI named them
  --llama3      Llama 3's tokenizer.model, whose ranks are turned into a tokenizer.json first
  --text        files whose lines are compared too
Another --seed gives other lines.
"""

import argparse
import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors

import common
import lines
from byte_pair_cases import BYTE_PAIR_CASES
from make_byte_pair import LLAMA3

GOLDEN = common.GOLDEN / "byte_pair"


def byte_alphabet():
    """The character that byte-level tokenizers write for each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(0x100 + index) for index, byte in enumerate(others)}


def llama3(file):
    """Llama 3's tokenizer from its list of tokens and ranks: a merge is each way to make a token of two others."""
    rows = [row.split() for row in file.read_text().splitlines() if row]
    ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
    alphabet = byte_alphabet()
    written = {token: "".join(alphabet[byte] for byte in token) for token in ranks}
    merges = []
    for token in sorted(ranks, key=ranks.get):
        ways = [(token[:at], token[at:]) for at in range(1, len(token)) if token[:at] in ranks and token[at:] in ranks]
        merges += sorted(ways, key=lambda way: (ranks[way[0]], ranks[way[1]]))
    vocabulary = {written[token]: rank for token, rank in ranks.items()}
    pairs = [(written[left], written[right]) for left, right in merges]
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs, ignore_merges=True))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    names = ["begin_of_text", "end_of_text", *(f"reserved_special_token_{index}" for index in range(254))]
    tokenizer.add_special_tokens([f"<|{name}|>" for name in names])
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", begin)]
    )
    return tokenizer


def gpt2(folder, target):
    """Copies GPT-2's two files to `target` and returns the reference made of them."""
    for ours, theirs in (("vocab.json", "encoder.json"), ("merges.txt", "vocab.bpe")):
        source = folder / ours if (folder / ours).exists() else folder / theirs
        shutil.copyfile(source, target / ours)
    tokenizer = Tokenizer(models.BPE.from_file(str(target / "vocab.json"), str(target / "merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def compare(program, name, folder, tokenizer, all_lines, show, rows):
    text = "".join(f"{line}\n" for line in all_lines).encode()
    done = subprocess.run([program, "tokenize", "--model", folder], input=text, capture_output=True, check=False)
    if done.returncode:
        print(f"FAIL {name}: exit status {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
        return False
    found = [json.loads(row) for row in done.stdout.decode().split("\n") if row]
    expected = [encoding.ids for encoding in tokenizer.encode_batch(all_lines)]
    wrong = [index for index, ids in enumerate(expected) if index >= len(found) or found[index] != ids]
    for index in wrong[:show]:
        print(f"  {all_lines[index]!r}\n    found    {found[index : index + 1]}\n    expected {expected[index]}")
    rows.append({"tokenizer": name, "lines": len(expected), "differ": len(wrong)})
    good = not wrong and len(found) == len(expected)
    print(f"{'ok  ' if good else 'FAIL'} {name}: {len(wrong)} of {len(expected)} lines differ, {len(found)} came back", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--checkpoint", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--gpt2", type=pathlib.Path)
    parser.add_argument("--llama3", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--show", type=int, default=5, help="differing lines to print for each tokenizer")
    common.add_write(parser)
    args = parser.parse_args()
    tables = json.loads((GOLDEN / "generator.json").read_text(encoding="utf-8"))
    source = lines.Generator(tables | ({} if args.seed is None else {"seed": args.seed}))
    # A line of input is a text: those with a line feed are left to tests/plain/byte_pair_test.cpp.
    all_lines = [case for case in BYTE_PAIR_CASES if "\n" not in case]
    all_lines += [source.line() for _ in range(tables["lines"])]
    for file in args.text:
        all_lines += file.read_text(encoding="utf-8").split("\n")
    good, rows = True, []
    with tempfile.TemporaryDirectory() as scratch:
        folders = {}
        for name in ("gpt2", "smollm2", "llama3"):
            folders[name] = GOLDEN / name, Tokenizer.from_file(str(GOLDEN / name / "tokenizer.json"))
        for folder in args.checkpoint:
            folders[str(folder)] = folder, Tokenizer.from_file(str(folder / "tokenizer.json"))
        for name, (folder, tokenizer) in list(folders.items()):
            copied = pathlib.Path(scratch) / str(len(list(pathlib.Path(scratch).iterdir())))
            copied.mkdir()
            shutil.copyfile(folder / "tokenizer.json", copied / "tokenizer.json")
            folders[name] = copied, tokenizer
        if args.gpt2:
            target = pathlib.Path(scratch) / "gpt2"
            target.mkdir()
            folders[f"{args.gpt2}, GPT-2's two files"] = target, gpt2(args.gpt2, target)
        if args.llama3:
            target = pathlib.Path(scratch) / "llama3"
            target.mkdir()
            tokenizer = llama3(args.llama3)
            tokenizer.save(str(target / "tokenizer.json"))
            folders[f"{args.llama3}, Llama 3's"] = target, tokenizer
        for name, (folder, tokenizer) in folders.items():
            tokenizer.no_truncation()
            tokenizer.no_padding()
            (folder / "config.json").write_text("{}\n")  # tokenize wants a model folder
            good &= compare(args.program, name, folder, tokenizer, all_lines, args.show, rows)
    if good:
        common.write_found(args, rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
