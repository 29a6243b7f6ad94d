"""10,000 lines of mixed Unicode, the same in every language: tables in generator.json and a 64-bit LCG.

    state = state * 6364136223846793005 + 1442695040888963407 (mod 2^64), starting at `seed`
    draw(n): advance, then (state >> 33) mod n

A line: text(), and where draw(25) = 0 a tab (pair separator) and a second text().
A text: n = draw(9) segments; where draw(12) = 0 first 1 + draw(3) spaces. Each segment: an entry of `segments` by its
weight (draw(sum of weights), first entry whose running total exceeds it), its characters, then separators[draw(size)].
Characters: with `choices` the string choices[draw(size)], otherwise min + draw(max - min + 1) code points, each the
draw(total)-th code point of the ranges counted one after another.

Only code points are used whose general category, decomposition and case mapping have been the same since Unicode 8.
No line holds a line feed, and a tab only ever separates a pair.
"""

import json
import struct

MASK = (1 << 64) - 1


class Generator:
    def __init__(self, tables):
        self.tables, self.state = tables, tables["seed"]

    def draw(self, count):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & MASK
        return (self.state >> 33) % count

    def characters(self, segment):
        if "choices" in segment:
            return segment["choices"][self.draw(len(segment["choices"]))]
        sizes = [last - first + 1 for first, last in segment["ranges"]]
        result = []
        for _ in range(segment["min"] + self.draw(segment["max"] - segment["min"] + 1)):
            index, position = self.draw(sum(sizes)), 0
            while index >= sizes[position]:
                index -= sizes[position]
                position += 1
            result.append(chr(segment["ranges"][position][0] + index))
        return "".join(result)

    def segment(self):
        index = self.draw(sum(segment["weight"] for segment in self.tables["segments"]))
        for segment in self.tables["segments"]:
            if index < segment["weight"]:
                return self.characters(segment)
            index -= segment["weight"]
        raise AssertionError

    def text(self):
        count = self.draw(9)
        result = " " * (1 + self.draw(3)) if self.draw(12) == 0 else ""
        separators = self.tables["separators"]
        for _ in range(count):
            result += self.segment()
            result += separators[self.draw(len(separators))]
        return result

    def line(self):
        text = self.text()
        return f"{text}\t{self.text()}" if self.draw(25) == 0 else text


def generate(path):
    tables = json.loads(path.read_text(encoding="utf-8"))
    source = Generator(tables)
    return [source.line() for _ in range(tables["lines"])]


def fnv32(data):
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def fnv64(data):
    value = 14695981039346656037
    for byte in data:
        value = ((value ^ byte) * 1099511628211) & MASK
    return value


def hash_ids(ids):
    """32-bit FNV-1a of the ids as little-endian uint32."""
    return fnv32(struct.pack(f"<{len(ids)}I", *ids))
