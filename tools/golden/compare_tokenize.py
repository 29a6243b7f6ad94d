"""Compares `hydrascope tokenize` with Hugging Face's tokenizer on 10,000 generated lines and the edge cases.

    compare_tokenize.py PROGRAM [--checkpoint FOLDER ...] [--seed n] [--write FILE] [--show n]

Every vocabulary of tests/golden/wordpiece is tried twice: as vocab.txt with tokenizer_config.json, and as
tokenizer.json alone with truncation and padding switched on, which the program must ignore. --checkpoint adds existing
folders (say MiniLM). Another --seed gives other lines.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from transformers import AutoTokenizer, BertTokenizer

import common
import lines
from edge_cases import EDGE_CASES
from make_wordpiece import encode, unlimited

WORDPIECE = common.GOLDEN / "wordpiece"


def model_folder(scratch, vocabulary, as_json):
    """The tiny BERT with another tokenizer: tokenize wants a model folder."""
    folder = scratch / f"{vocabulary}-{'tokenizer-json' if as_json else 'vocab-txt'}"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(common.GOLDEN / "models" / "bert" / name, folder / name)
    source = WORDPIECE / vocabulary
    if as_json:
        tokenizer = BertTokenizer.from_pretrained(source)._tokenizer
        tokenizer.enable_truncation(16)
        tokenizer.enable_padding(length=16)
        tokenizer.save(str(folder / "tokenizer.json"))
    else:
        for name in ("vocab.txt", "tokenizer_config.json"):
            shutil.copyfile(source / name, folder / name)
    return folder


def run_program(program, folder, all_lines):
    text = "".join(f"{line}\n" for line in all_lines).encode()
    done = subprocess.run([program, "tokenize", "--model", folder], input=text, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    return [json.loads(row) for row in done.stdout.decode().split("\n") if row]


def compare(program, folder, tokenizer, all_lines, show, rows):
    try:
        found = run_program(program, folder, all_lines)
    except (RuntimeError, OSError, ValueError) as problem:
        print(f"FAIL {folder.name}: {problem}")
        return False
    if len(found) != len(all_lines):
        print(f"FAIL {folder.name}: {len(found)} lines came back, {len(all_lines)} went in")
        return False
    wrong = 0
    for line, ids in zip(all_lines, found):
        expected = encode(tokenizer, line)
        if ids != expected:
            wrong += 1
            if wrong <= show:
                print(f"  {line!r}\n    found    {ids}\n    expected {expected}")
    print(f"{'FAIL' if wrong else 'ok  '} {folder.name}: {wrong} of {len(all_lines)} lines differ", flush=True)
    rows.append({"tokenizer": folder.name, "lines": len(all_lines), "differ": wrong})
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--checkpoint", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--show", type=int, default=5, help="differing lines to print for each folder")
    common.add_write(parser)
    args = parser.parse_args()
    tables = json.loads((WORDPIECE / "generator.json").read_text(encoding="utf-8"))
    source = lines.Generator(tables | ({} if args.seed is None else {"seed": args.seed}))
    all_lines = [source.line() for _ in range(tables["lines"])] + EDGE_CASES
    good, rows = True, []
    with tempfile.TemporaryDirectory() as scratch:
        for vocabulary in ("uncased", "cased"):
            tokenizer = unlimited(BertTokenizer.from_pretrained(WORDPIECE / vocabulary)._tokenizer)
            for as_json in (False, True):
                folder = model_folder(pathlib.Path(scratch), vocabulary, as_json)
                good &= compare(args.program, folder, tokenizer, all_lines, args.show, rows)
        for folder in args.checkpoint:
            tokenizer = unlimited(AutoTokenizer.from_pretrained(folder)._tokenizer)
            good &= compare(args.program, folder.resolve(), tokenizer, all_lines, args.show, rows)
    if good:
        common.write_found(args, rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
