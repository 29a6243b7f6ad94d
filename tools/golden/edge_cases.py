"""Hand-written lines for the tokenizer, each with its reason."""

EDGE_CASES = [
    "", " ", "   \u3000 ", "Hello, World!", "  leading and trailing  ",
    # Special tokens inside the text: matched exactly, case-sensitively, before the normaliser and even inside words.
    "[SEP]", "a[SEP]b", "[sep]", "[MASK] [MASK]", "the [MASK] sat", "[CLS][SEP][PAD][UNK]", "[ MASK ]",
    "[[MASK]]", "[MASK",
    "\u200b[SEP]\u200b", "[S\u00adEP]", "[SEP\u0301]", "[\u0000SEP]", "un[UNK]known", "##ing ## ing #",
    # Control characters vanish without a gap, tab, line feed and carriage return are spaces, others of Cc are not.
    "a\u0000b", "a\rb", "a\r", "a\u000bb", "a\u000cb", "a\u001fb", "a\u0085b", "a\u007fb", "a\ufffdb",
    "a\u00adb", "a\ue000b",
    "a\U000e0001b", "a\U000f0000b", "a\U0010fffdb",
    # Zero width: Cf vanishes, so words join; variation selectors are Mn and vanish only where accents are stripped.
    "a\u200bb", "a\u200cb", "a\u200db", "a\u2060b", "a\ufeffb", "\ufeffa", "a\u180eb", "a\ufe0fb", "a\u034fb",
    "\u2764\ufe0f",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\U0001f1eb\U0001f1f7",
    # White space of every kind.
    "a\u00a0b", "a\u1680b", "a\u2003b", "a\u2028b", "a\u2029b", "a\u202fb", "a\u205fb", "a\u3000b",
    # Accents: NFD, then Mn dropped; only when lower-casing (strip_accents null). Mc and Me stay.
    "naïve café", "nai\u0308ve cafe\u0301", "Ångström \u212bngstrom", "Việt Nam", "q\u0323\u0307 q\u0307\u0323",
    "\u0301", "a\u20ddb",
    "ø ł đ ħ ŧ", "Æ Œ ß ẞ", "ﬁ ﬂ ﬃ", "½ ² ㎏ Ⅳ", "µ μ Ω \u2126", "हिन्दी", "ไทยนี้", "שָׁלוֹם", "العَرَبِيَّة",
    "ё й Ё Й",
    # Lower case is by code point: no final sigma, İ to i and a dot (which falls with the accents), titlecase.
    "ΣΑΣ Σ ΟΔΟΣ", "İstanbul ISPARTA ıI", "Ǆ ǅ ǆ", "ΐ ᾳ ᾼ Ὀ", "ⅷ Ⅷ ⓐ Ⓐ", "𐐀𐐨", "Ꭰ ꭰ", "Ⴀ ა", "ＡＢＣ ａｂｃ", "𝐀𝐁",
    # Hangul falls apart into jamo where accents are stripped (NFD), and stays whole where not.
    "한국어", "\u1112\u1161\u11ab", "각 가ㄱ",
    # Ideographs become words; kana, hangul, bopomofo and the ideographic zero do not.
    "北京大学", "東京タワー", "漢字かな交じり文", "〇一二", "\u3400\u4dbf\u4dc0", "\u9fff", "\U00020000\U0002a6df", "\ufa0e\uf900",
    "\U0002b740", "\U0002b820\U0002b91f\U0002b920", "\U0002f800", "ㄅㄆ", "々", "a中b文c",
    # Punctuation: ASCII symbols and category P split, other symbols do not.
    "don't can't", "a-b_c", "$5 ^ ` ~ | + < = >", "100% #1 @x", "€5 £6 ¥7", "a±b×c÷d", "«a» “b” ‘c’ „d‟",
    "a…b—c–d‐e", "¿a? ¡b!", "a·b・c",
    "a§b¶c", "§¶", "a。b、c", "「a」『b』", "٫٬؟،؛", "।॥", "a\u2044b", "a\u2040b", "№™©®°", "e.g. i.e. 3.14 1,000",
    "http://example.org/?q=1&r=2#top", "user@example.org", "C++ C# F#", "\\n \\t", "\u05be\u05f3", "\u1806",
    "\u166d \u166e", "፠፡።",
    # Words over 100 characters after normalising are [UNK] whole; 100 are not. Accents stripped first shorten a word.
    "a" * 100, "a" * 101, "é" * 100, "é" * 101, "e\u0301" * 100, "e\u0301" * 101, "a\u00ad" * 100,
    "x" * 99 + "-y", "한" * 40, "中" * 101,
    "a" * 100 + " b", "a" * 101 + " b", "\U0001f600" * 100, "\U0001f600" * 101, "ﬀ" * 100,
    # An unknown character makes the whole word [UNK].
    "token\u4dc0", "a\U0001f9ffb", "\u0c95", "attention\u0250", "running attentions Hydras hedgehogs",
    # Pairs.
    "the head\tof the token", "a\tb", "\tb", "[SEP]\t[SEP]", " a \t b ", "naïve\t한국어",
]
