"""Writes tests/golden/wordpiece/generator.json, the tables of lines.py."""

import common

LATIN = [(0x61, 0x7A), (0x61, 0x7A), (0x61, 0x7A), (0x41, 0x5A)]
ACCENTED = [(0x61, 0x7A), (0xC0, 0xFF), (0x100, 0x17F), (0x1E00, 0x1E9F)]
SEGMENTS = [
    # name, weight, shortest, longest, ranges
    ("latin", 20, 1, 9, LATIN),
    ("digits", 5, 1, 6, [(0x30, 0x39)]),
    ("accented", 10, 1, 8, ACCENTED),
    ("combining", 6, 1, 10, [*LATIN, (0x300, 0x33F)]),
    ("cyrillic", 6, 1, 9, [(0x410, 0x44F), (0x400, 0x40F), (0x450, 0x45F)]),
    ("greek", 6, 1, 9, [(0x391, 0x3A1), (0x3A3, 0x3C9), (0x386, 0x386), (0x388, 0x38A), (0x1F00, 0x1F07)]),
    ("hebrew", 4, 1, 7, [(0x5D0, 0x5EA), (0x5B0, 0x5B9)]),
    ("arabic", 4, 1, 8, [(0x621, 0x63A), (0x641, 0x652), (0x660, 0x669)]),
    ("devanagari", 4, 1, 8, [(0x905, 0x939), (0x93E, 0x94D), (0x958, 0x95F), (0x964, 0x965)]),
    ("thai", 4, 1, 9, [(0xE01, 0xE3A), (0xE40, 0xE4E)]),
    ("ideographs", 6, 1, 5, [(0x4E00, 0x4E3F), (0x3400, 0x3407), (0x20000, 0x20007), (0xF900, 0xF907)]),
    ("kana", 4, 1, 7, [(0x3041, 0x3096), (0x30A1, 0x30FA), (0x30FC, 0x30FC), (0xFF66, 0xFF9D)]),
    ("hangul", 5, 1, 5, [(0xAC00, 0xAC7F), (0xD780, 0xD7A3), (0x1100, 0x1112)]),
    ("emoji", 4, 1, 4, [(0x1F600, 0x1F642), (0x200D, 0x200D), (0xFE0F, 0xFE0F), (0x1F3FB, 0x1F3FF),
                        (0x2600, 0x2612)]),
    ("ascii-punctuation", 6, 1, 3, [(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)]),
    ("punctuation", 5, 1, 3, [(0x2010, 0x2027), (0x2030, 0x205E), (0x3001, 0x3003), (0x3008, 0x3011), (0xA1, 0xBF)]),
    ("symbols", 4, 1, 4, [(0x20A0, 0x20BD), (0x2190, 0x219F), (0x2200, 0x2210), (0x2460, 0x2473), (0xFB00, 0xFB06)]),
    ("fullwidth", 3, 1, 6, [(0xFF01, 0xFF5E)]),
    ("control", 4, 1, 2, [(0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0xFFFD, 0xFFFD),
                          (0xE000, 0xE003)]),
    ("invisible", 4, 1, 2, [(0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x2064), (0xFEFF, 0xFEFF),
                            (0xE0061, 0xE007A)]),
    ("spaces", 4, 1, 3, [(0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
                         (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0x0D, 0x0D)]),
    ("long", 2, 90, 112, LATIN),
    ("long-accented", 1, 80, 112, [(0x61, 0x7A), (0xE0, 0xF6), (0x301, 0x301)]),
    ("mixed", 5, 2, 7, [*LATIN, (0xC0, 0xD6), (0x3B1, 0x3C9), (0x4E00, 0x4E07), (0x30, 0x39), (0x5F, 0x5F),
                        (0x200D, 0x200D)]),
    ("wide", 4, 1, 4, [(0x250, 0x2AF), (0x531, 0x556), (0x10D0, 0x10F0), (0x1200, 0x1246), (0x13A0, 0x13F4),
                       (0x2C00, 0x2C2E), (0x10400, 0x1044F), (0x1D400, 0x1D454), (0x16A0, 0x16EA)]),
]
CHOICES = [
    "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[sep]", "[Mask]", "[SEP", "SEP]", "[[SEP]]", "x[SEP]y",
    "[MASK][MASK]", "[SE\u0301P]", "[ SEP ]", "##ing", "##", "don't", "the", "attention", "Hydra",
    "Hedgehog", "running", "e.g.", "3.14", "user@example.org", "C++", "naïve", "nai\u0308ve", "Ångström",
    "A\u030angstro\u0308m", "İstanbul", "ıI", "ΣΑΣ", "Straße", "STRASSE", "ﬁne", "Ǆ", "ǆ", "Dž", "½", "㎏",
    "한국어", "한국어", "北京大学", "東京タワー", "ไทย", "हिन्दी", "العربية", "שָׁלוֹם", "Việt Nam", "q\u0323\u0307",
    "q\u0307\u0323", "\u0301", "\u0301a", "🇫🇷", "👨\u200d👩\u200d👧", "👍🏽", "❤\ufe0f", "a\u200bb", "a\u00adb",
    "a\u00a0b", "a\u2028b", "a\u0085b", "…", "“quoted”", "—", "$5", "^", "`", "~", "|", "±", "§", "¶", "º",
    "ª", "·", "⁄", "€", "№", "™", "a_b", "__init__", "http://example.org/?q=1&r=2#top",
]
SEPARATORS = [" ", " ", " ", " ", " ", "", "", "  ", ", ", ". ", "\u00a0", "\u3000", "-"]


def main():
    segments = []
    for name, weight, shortest, longest, ranges in SEGMENTS:
        segments.append({"name": name, "weight": weight, "min": shortest, "max": longest, "ranges": ranges})
    segments.append({"name": "choices", "weight": 14, "choices": CHOICES})
    folder = common.GOLDEN / "wordpiece"
    folder.mkdir(parents=True, exist_ok=True)
    rows = ",\n  ".join(common.compact(segment) for segment in segments)
    head = f'"seed": 20240229, "lines": 10000,\n "separators": {common.compact(SEPARATORS)}'
    (folder / "generator.json").write_text(f'{{{head},\n "segments": [\n  {rows}\n ]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
