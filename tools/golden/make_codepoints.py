"""Writes tests/golden/wordpiece/codepoints.json and codepoints.fnv: every code point through BERT's normaliser.

The tokenizers library classes characters by tables older than today's Unicode (about version 8), so that ICU or
another current library answers differently for some. codepoints.json holds the library's own answers as ranges
[first, last], found by asking it for each code point:

    removed       dropped by clean_text (Cc, Cf, Co, U+0000, U+FFFD but not tab, line feed, carriage return)
    space         turned into a space by clean_text
    ideograph     set apart by tokenize_chinese_chars
    nonspacing    dropped by strip_accents after canonical decomposition
    punctuation   split off by the pre-tokenizer
    decomposed    code points whose decomposition differs from Unicode 14's NFD: {code point: text}
    lowered       code points whose lower case differs from Unicode 14's: {code point: text}

codepoints.fnv: for each block of 256 code points a 32-bit FNV-1a over its members (without surrogates): the words that
the uncased pipeline makes of `a`, the code point, `b`, each as UTF-8 followed by byte 0x01, then byte 0x02.
"""

import struct
import sys
import unicodedata

from tokenizers import normalizers, pre_tokenizers

import common
import lines

FOLDER = common.GOLDEN / "wordpiece"
OFF = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
CODE_POINTS = [point for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]


def normaliser(**options):
    return normalizers.BertNormalizer(**OFF | options).normalize_str


def ranges(points):
    result = []
    for point in sorted(points):
        if result and result[-1][1] == point - 1:
            result[-1][1] = point
        else:
            result.append([point, point])
    return result


def probe():
    clean, apart = normaliser(clean_text=True), normaliser(handle_chinese_chars=True)
    strip, lower = normaliser(strip_accents=True), normaliser(lowercase=True)
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    found = {name: [] for name in ("removed", "space", "ideograph", "nonspacing", "punctuation")}
    decomposed, lowered = {}, {}
    for point in CODE_POINTS:
        character = chr(point)
        cleaned = clean(f"a{character}b")
        if cleaned == "ab":
            found["removed"].append(point)
        elif cleaned == "a b":
            found["space"].append(point)
        else:
            assert cleaned == f"a{character}b"
        if apart(character) != character:
            found["ideograph"].append(point)
        if strip(character) == "":
            found["nonspacing"].append(point)
        if [word for word, _ in split(f"a{character}b")] == ["a", character, "b"]:
            found["punctuation"].append(point)
        if lower(character) != character.lower():
            lowered[f"{point:X}"] = lower(character)
    dropped = set(found["nonspacing"])
    for point in CODE_POINTS:
        canonical = unicodedata.normalize("NFD", chr(point))
        if strip(chr(point)) != "".join(part for part in canonical if ord(part) not in dropped):
            decomposed[f"{point:X}"] = strip(chr(point))
    return {name: ranges(points) for name, points in found.items()} | {"decomposed": decomposed, "lowered": lowered}


def block_hashes():
    normalise = normalizers.BertNormalizer(lowercase=True).normalize_str
    split, blocks = pre_tokenizers.BertPreTokenizer().pre_tokenize_str, {}
    for point in CODE_POINTS:
        words = [word for word, _ in split(normalise(f"a{chr(point)}b"))]
        data = b"".join(word.encode() + b"\x01" for word in words) + b"\x02"
        blocks.setdefault(point // 256, bytearray()).extend(data)
    return [lines.fnv32(blocks.get(block, b"")) for block in range(0x1100)]


def main():
    assert unicodedata.unidata_version == "14.0.0", "run with Python 3.11: decomposed and lowered refer to Unicode 14"
    tables = probe()
    rows = ",\n".join(f' "{name}": {common.compact(value)}' for name, value in tables.items())
    (FOLDER / "codepoints.json").write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    (FOLDER / "codepoints.fnv").write_bytes(struct.pack("<4352I", *block_hashes()))

    # The generated lines keep to code points that the library and Unicode 14 treat alike.
    used = {ord(character) for line in lines.generate(FOLDER / "generator.json") for character in line}
    current = {point for point in CODE_POINTS if unicodedata.category(chr(point)) == "Mn"}
    marks = {point for first, last in tables["nonspacing"] for point in range(first, last + 1)}
    points = {point for first, last in tables["punctuation"] for point in range(first, last + 1)}
    ascii_symbols = {point for point in range(33, 127) if not chr(point).isalnum()}
    splitting = ascii_symbols | {point for point in CODE_POINTS if unicodedata.category(chr(point))[0] == "P"}
    strange = used & ((marks ^ current) | (points ^ splitting))
    strange |= used & {int(point, 16) for name in ("decomposed", "lowered") for point in tables[name]}
    assert not strange, [f"{point:X}" for point in strange]


if __name__ == "__main__":
    main()
