#!/usr/bin/env python3
"""The tensors of DeepSeek-V3's checkpoint, one a line, from the numbers of its public configuration: a list for
`reshard plan --list`. About 92,000 of them, 671 B parameters and the one layer of multi-token prediction.
With --patterns equal layers and experts are one line: {layer:3:62} stands for the layers from 3 to 61."""

import sys

LAYERS = 61  # and the one for multi-token prediction
DENSE_LAYERS = 3
HIDDEN = 7168
INTERMEDIATE = 18432
VOCABULARY = 129280
HEADS = 128
Q_LORA = 1536
KV_LORA = 512
QK_NOPE = 128
QK_ROPE = 64
V_HEAD = 128
EXPERTS = 256
SHARED_EXPERTS = 1
EXPERT_INTERMEDIATE = 2048
BLOCK = 128


def plain(name, *shape, dtype="bf16"):
    yield f"{name} {dtype}[{','.join(map(str, shape))}]"


def scaled(name, rows, columns):
    """A matrix in fp8, with a scale for each block."""
    yield from plain(f"{name}.weight", rows, columns, dtype="f8_e4m3fn")
    yield from plain(f"{name}.weight_scale_inv", -(-rows // BLOCK), -(-columns // BLOCK), dtype="f32")


def mlp(name, intermediate):
    yield from scaled(f"{name}.gate_proj", intermediate, HIDDEN)
    yield from scaled(f"{name}.up_proj", intermediate, HIDDEN)
    yield from scaled(f"{name}.down_proj", HIDDEN, intermediate)


def attention(name):
    yield from scaled(f"{name}.q_a_proj", Q_LORA, HIDDEN)
    yield from plain(f"{name}.q_a_layernorm.weight", Q_LORA)
    yield from scaled(f"{name}.q_b_proj", HEADS * (QK_NOPE + QK_ROPE), Q_LORA)
    yield from scaled(f"{name}.kv_a_proj_with_mqa", KV_LORA + QK_ROPE, HIDDEN)
    yield from plain(f"{name}.kv_a_layernorm.weight", KV_LORA)
    yield from scaled(f"{name}.kv_b_proj", HEADS * (QK_NOPE + V_HEAD), KV_LORA)
    yield from scaled(f"{name}.o_proj", HIDDEN, HEADS * V_HEAD)


def layer(number, dense, experts):
    """One layer, with the experts of these numbers."""
    name = f"model.layers.{number}"
    yield from plain(f"{name}.input_layernorm.weight", HIDDEN)
    yield from attention(f"{name}.self_attn")
    yield from plain(f"{name}.post_attention_layernorm.weight", HIDDEN)
    if dense:
        yield from mlp(f"{name}.mlp", INTERMEDIATE)
        return
    yield from plain(f"{name}.mlp.gate.weight", EXPERTS, HIDDEN)
    yield from plain(f"{name}.mlp.gate.e_score_correction_bias", EXPERTS, dtype="f32")
    for expert in experts:
        yield from mlp(f"{name}.mlp.experts.{expert}", EXPERT_INTERMEDIATE)
    yield from mlp(f"{name}.mlp.shared_experts", SHARED_EXPERTS * EXPERT_INTERMEDIATE)


def model(patterns):
    yield from plain("model.embed_tokens.weight", VOCABULARY, HIDDEN)
    if patterns:
        yield from layer(f"{{layer:{DENSE_LAYERS}}}", True, [])
        yield from layer(f"{{layer:{DENSE_LAYERS}:{LAYERS + 1}}}", False, [f"{{expert:{EXPERTS}}}"])
    else:
        for number in range(LAYERS + 1):
            yield from layer(number, number < DENSE_LAYERS, range(EXPERTS))
    prediction = f"model.layers.{LAYERS}"
    yield from plain(f"{prediction}.enorm.weight", HIDDEN)
    yield from plain(f"{prediction}.hnorm.weight", HIDDEN)
    yield from plain(f"{prediction}.eh_proj.weight", HIDDEN, 2 * HIDDEN)
    yield from plain(f"{prediction}.embed_tokens.weight", VOCABULARY, HIDDEN)
    yield from plain(f"{prediction}.shared_head.norm.weight", HIDDEN)
    yield from plain(f"{prediction}.shared_head.head.weight", VOCABULARY, HIDDEN)
    yield from plain("model.norm.weight", HIDDEN)
    yield from plain("lm_head.weight", VOCABULARY, HIDDEN)


if __name__ == "__main__":
    print("\n".join(model("--patterns" in sys.argv)))
