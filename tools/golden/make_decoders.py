"""Writes tests/golden/decoders: tiny random decoders and what transformers computes from them.

The texts are random ids; `batch` has a shorter sequence, padded at its end. hidden.L is the last block's output, before
the final norm (transformers returns it after the norm).
"""

import shutil

import torch
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
import tiny_tokenizer

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


def llama(**extra):
    shape = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": POSITIONS}
    return shape | {"bos_token_id": 1, "eos_token_id": 2} | extra


def main():
    if DECODERS.exists():
        shutil.rmtree(DECODERS)
    half, brain = torch.float16, torch.bfloat16
    gpt2 = GPT2Config(vocab_size=VOCABULARY, n_positions=POSITIONS, n_embd=24, n_layer=2, n_head=3, bos_token_id=1,
                      eos_token_id=2)
    make("gpt2", GPT2LMHeadModel, gpt2, half)
    linear = {"rope_type": "linear", "factor": 3.0, "rope_theta": 10000.0}
    make("llama-linear", LlamaForCausalLM, LlamaConfig(**llama(rope_parameters=linear, attention_bias=True)), half)
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    llama3 |= {"original_max_position_embeddings": 16, "rope_theta": 500.0}
    tied = llama(rope_parameters=llama3, tie_word_embeddings=True, num_key_value_heads=1, mlp_bias=True)
    make("llama3-tied", LlamaForCausalLM, LlamaConfig(**tied), brain)
    mistral = llama(sliding_window=None, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    make("mistral", MistralForCausalLM, MistralConfig(**mistral), half)
    tiny_tokenizer.write(DECODERS / "mistral", VOCABULARY)
    qwen2 = llama(tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    make("qwen2", Qwen2ForCausalLM, Qwen2Config(**qwen2), half)


if __name__ == "__main__":
    main()
