"""A byte-level tokenizer for the tiny decoders: 61 tokens, for texts of small letters, spaces and line breaks."""

import json

SPECIAL = ["<pad>", "<s>", "</s>"]
CHARACTERS = ["Ġ", "Ċ", ".", *"abcdefghijklmnopqrstuvwxyz"]
MERGES = """Ġ t|h e|Ġt he|Ġ a|i n|e r|a n|o n|Ġ s|Ġ c|a t|Ġc at|Ġs at|o u|r e|Ġ w|i t|Ġ i|Ġ f|Ġ b|Ġ m|n d|e s|e d|Ġ o|Ġo n
Ġm at|Ġ h|Ġa nd""".replace("\n", "|").split("|")


def tokenizer(vocabulary):
    tokens = SPECIAL + CHARACTERS + [merge.replace(" ", "") for merge in MERGES]
    assert len(tokens) == len(set(tokens)) == vocabulary
    special = [
        {"id": index, "content": token, "special": True, "normalized": False, "single_word": False, "lstrip": False}
        | {"rstrip": False}
        for index, token in enumerate(SPECIAL)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": MERGES,
        },
    }


def write(folder, vocabulary):
    text = json.dumps(tokenizer(vocabulary), ensure_ascii=False, indent=1)
    (folder / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
