"""Writes tests/golden/decoders: tiny random decoders and what transformers computes from them.

The texts are random ids; `batch` has a shorter sequence, padded at its end. hidden.L is the last block's output, before
the final norm (transformers returns it after the norm).
"""

import json
import shutil

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

import common

DECODERS = common.GOLDEN / "decoders"
VOCABULARY, POSITIONS = 61, 48


@torch.no_grad()
def run_model(model, final_norm, **inputs):
    """As common.run_model, with the last hidden state before the final norm."""
    before = []
    hook = final_norm.register_forward_pre_hook(lambda _, arguments: before.append(arguments[0]))
    out = model(**inputs, output_hidden_states=True, output_attentions=True, use_cache=False)
    hook.remove()
    layers = model.config.num_hidden_layers
    assert len(out.hidden_states) == layers + 1 and len(out.attentions) == layers and len(before) == 1
    assert torch.allclose(final_norm(before[0]), out.hidden_states[layers], atol=1e-5)
    result = {"logits": out.logits}
    result.update({f"hidden.{index}": value for index, value in enumerate([*out.hidden_states[:layers], before[0]])})
    result.update({f"attention.{index}": value for index, value in enumerate(out.attentions)})
    return result


def inputs_of(name, lengths):
    """Ids (B,N) of these lengths, padded with id 0, and the mask."""
    rng, longest = common.generator(name), max(lengths)
    ids = torch.from_numpy(rng.integers(0, VOCABULARY, (len(lengths), longest)))
    mask = torch.tensor([[int(index < length) for index in range(longest)] for length in lengths])
    return {"input_ids": ids * mask, "attention_mask": mask}


def make(name, model_class, config, dtype):
    folder = DECODERS / name
    common.save_checkpoint(common.randomise(model_class(config), name), folder, dtype)
    model = common.load(model_class, folder)
    final_norm = model.transformer.ln_f if hasattr(model, "transformer") else model.model.norm
    for file, lengths in (("expected", [1]), ("expected-text", [19]), ("expected-batch", [11, 7])):
        inputs = inputs_of(f"{name}-{file}", lengths)
        common.write_tensors(folder / f"{file}.safetensors", {**inputs, **run_model(model, final_norm, **inputs)})


TEXT = "The queries of a head ask, the keys answer, and the values are what is said. Softmax weighs them; linear "
TEXT += "attention sums features first, so that time and memory grow with the tokens alone.\n"


def write_tokenizer(folder, vocabulary):
    """A byte-level tokenizer, trained on TEXT."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|begin|>", "<|end|>"]
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": special[0], "eos_token": special[1], "tokenizer_class": "PreTrainedTokenizerFast"}
    common.write_json(folder / "tokenizer_config.json", names)
    return tokenizer


def make_written(name, vocabulary, positions):
    """A decoder with a tokenizer, for tests of commands and the window; what it makes of TEXT."""
    folder = DECODERS / name
    config = LlamaConfig(vocab_size=vocabulary, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=positions,
                         tie_word_embeddings=True, bos_token_id=0, eos_token_id=1)
    common.save_checkpoint(common.randomise(LlamaForCausalLM(config), name), folder, torch.float16)
    ids = torch.tensor([write_tokenizer(folder, vocabulary).encode(TEXT).ids])
    model = common.load(LlamaForCausalLM, folder)
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits
        written = model.generate(ids, max_new_tokens=12, do_sample=False, pad_token_id=1, eos_token_id=None)
    loss = torch.nn.functional.cross_entropy(logits[0, :-1], ids[0, 1:], reduction="none")[None]
    common.write_tensors(folder / "expected.safetensors",
                         {"input_ids": ids, "last": logits[:, -1], "loss": loss, "written": written[:, ids.shape[1]:]},
                         {"input": json.dumps({"text": TEXT})})


def kinds(vocabulary, positions, width):
    """(name, class, configuration) of each: biases, grouped heads, tied heads, every kind of position."""
    def llama(**extra):
        shape = {"vocab_size": vocabulary, "hidden_size": width, "intermediate_size": 3 * width // 2}
        shape |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
        return shape | {"max_position_embeddings": positions, "bos_token_id": 1, "eos_token_id": 2} | extra

    default = {"rope_type": "default", "rope_theta": 1e6}
    linear = {"rope_type": "linear", "factor": 3.0, "rope_theta": 10000.0}
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    llama3 |= {"original_max_position_embeddings": positions // 3, "rope_theta": 500.0}
    gpt2 = GPT2Config(vocab_size=vocabulary, n_positions=positions, n_embd=width, n_layer=2, n_head=4, bos_token_id=1,
                      eos_token_id=2)
    tied = llama(rope_parameters=llama3, tie_word_embeddings=True, num_key_value_heads=1, mlp_bias=True)
    return [
        ("gpt2", GPT2LMHeadModel, gpt2),
        ("llama-linear", LlamaForCausalLM, LlamaConfig(**llama(rope_parameters=linear, attention_bias=True))),
        ("llama3-tied", LlamaForCausalLM, LlamaConfig(**tied)),
        ("mistral", MistralForCausalLM, MistralConfig(**llama(sliding_window=None, rope_parameters=default))),
        ("qwen2", Qwen2ForCausalLM, Qwen2Config(**llama(tie_word_embeddings=True, rope_parameters=default))),
    ]


def main():
    if DECODERS.exists():
        shutil.rmtree(DECODERS)
    for name, model_class, config in kinds(VOCABULARY, POSITIONS, width=32):
        make(name, model_class, config, torch.bfloat16 if name == "llama3-tied" else torch.float16)
    make_written("written", vocabulary=320, positions=512)


if __name__ == "__main__":
    main()
