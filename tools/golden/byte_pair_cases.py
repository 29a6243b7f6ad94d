"""Hand-written texts for byte-pair tokenizers, each group with its reason."""

BYTE_PAIR_CASES = [
    "", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\n \n", "a\n", "a \n b", "a  b", "a   b", "  a", "a  ", " a ",
    "a\tb", "a\t\tb", "a\u00a0b", "a \u00a0 b", "a\u3000b", "a\u2028b", "a\u0085b", "a\u180eb", "\x0b\x0c", "a\r\n\r\n b", "\n\n  \n\n x",
    # Contractions, in both cases and with other apostrophes.
    "don't can't I'm we've they'll she'd it's you're", "DON'T CAN'T I'M WE'VE THEY'LL SHE'D IT'S YOU'RE", "It'S", "'s", "''s", "'ſ",
    "don’t", "o'clock", "rock 'n' roll", "'tis", "x'rest",
    # Digits of every kind, alone and within words.
    "1", "12", "123", "1234", "1234567890", "3.14", "1,000,000", "a1b2", "2nd 3RD", "٠١٢٣", "½ ¾ ² ³", "Ⅳ ⅷ", "①②", "𝟘𝟙", "१२३", "一二三",
    # Words of other scripts, marks that join and marks that stand alone.
    "naïve café", "nai\u0308ve cafe\u0301", "Ångström \u212bngstrom", "q\u0323\u0307 q\u0307\u0323", "\u0301", " \u0301a", "Việt Nam",
    "한국어", "\u1112\u1161\u11ab", "각 가ㄱ", "北京大学", "東京タワー、日本", "漢字かな交じり文", "ไทยนี้", "हिन्दी में", "শুভ", "தமிழ்",
    "שָׁלוֹם עולם", "العَرَبِيَّة", "مرحبا، كيف؟", "Ελληνικά ΣΑΣ", "ё й Ё Й", "İstanbul ıI", "ß ẞ ﬁ ﬀ", "Ǆ ǅ ǆ",
    # Marks that the reference's normalization does not know, and a letter that it does not compose.
    "a\u1ac0\u0334", "a\u0301\u1ac0\u0316\u0334", "a\u0316\u0301\u0334", "\U00011935\U00011930", "\U00011938", "\u09c7\u09be",
    # Emoji: sequences with joiners, flags, skin tones, variation selectors.
    "😀", "😀😀", "a😀b", "👨\u200d👩\u200d👧\u200d👦", "👍🏽", "🇫🇷🇩🇪", "❤\ufe0f", "1\ufe0f\u20e3",
    # What has no glyph: NUL, controls, zero width, private use, unassigned, the replacement character.
    "a\u0000b", "\u0000", "a\u0001\u001fb", "\x7f", "a\u200bb", "a\u200db", "\ufeffa", "a\u00adb", "a\ue000b", "a\U0010fffdb",
    "a\ufffdb", "\u0378", "\uffff", "a\u0897b", "\U00010d4a\U00010d69x", "\U00016d43\U00016d63\U00016d67", "\U0001fae9",
    # Punctuation, symbols, code.
    "Hello, World!", "e.g. i.e.", "a-b_c", "__init__", "$5 €6 £7", "100% #1 @x", "«a» “b”", "…—–", "a±b×c÷d", "C++ C#", "\\n \\t",
    "http://example.org/?q=1&r=2#top", "for (int i = 0; i < 10; ++i) {\n\treturn x[i] * 2.5e-3;\n}\n", "    indented\n        more\n",
    "!!!\n\n\n", "---\n", "a.\n\nB", "?!\r\n\r\n", " .", "  .\n", "(a) [b] {c}",
    # Tokens that are matched in the text, and what only looks like them.
    "<|endoftext|>", "a<|endoftext|>b", "a <|endoftext|> b", "<|endoftext|><|endoftext|>", "<|endoftext|", "<|ENDOFTEXT|>",
    "<|im_start|>user\nHi<|im_end|>\n", "<|begin_of_text|>", "<|begin_of_text|>the", "the<|end_of_text|> the",
    "<mask>", "a <mask> b", "a  \n<mask>  b", "a<mask>", " <mask>", "<mask> <mask>", "<right>", "a <right> b", "a<right> \n b", "<right> <right>",
    "<right> <mask>", "word", "a word b", "words", "sword", "a.word!", "wordword", "word word", "word<x>", "a<x>", "aword<x>", "aword<x><x>", "_word", "word1", "\u0301word", "naïve",
    "nai\u0308ve", "the naïve the nai\u0308ve", "xnaïvex", "keyword", "keywords keyword",
    # Long runs without a boundary, which the queue of merges must do in the same order.
    "a" * 100, "ab" * 70, "the" * 40, " " * 50, " " * 50 + "x", "\n" * 30, "thethe tothe andthe", "中" * 60, "1" * 50, "é" * 40, "!" * 40,
    "aaaa aaaaa aaaaaa", "inging nging ing", "tion ation tation station",
]  # fmt: skip
