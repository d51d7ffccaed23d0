"""Small checkpoints of the shapes of published models, with the names of Hugging Face, and what each rank has of them. Numpy
cuts every tile from the published layouts, without the library."""

import pathlib

from suite import np

import checkpoints as files

MODELS = pathlib.Path(__file__).parents[2] / "docs/models"
HEAD = 128


def heads(array, rows, rank, ranks, axis=0):
    """The whole heads of a rank. Ranks share a head if there are fewer heads than ranks."""
    count = array.shape[axis] // rows
    first, last = (rank * count // ranks, rank * count // ranks + 1) if count < ranks else \
        (rank * count // ranks, (rank + 1) * count // ranks)
    return array[(slice(None),) * axis + (slice(first * rows, last * rows),)]


def even(array, rank, ranks, axis=0):
    return heads(array, array.shape[axis] // ranks, rank, ranks, axis)


def padded(array, rows):
    return np.concatenate([array, np.zeros((rows - array.shape[0], *array.shape[1:]), array.dtype)])


def in_groups(parts, groups):
    """Each group has its share of every part."""
    shares = [part.reshape(groups, -1, part.shape[1]) for part in parts]
    return np.concatenate(shares, axis=1).reshape(-1, parts[0].shape[1])


class Model:
    """The tensors of a checkpoint and of each rank."""

    def __init__(self, rng, **sizes):
        """Sizes are the class's, except the given ones."""
        self.rng = rng
        self.tensors = {}
        for name, size in sizes.items():
            assert hasattr(self, name), name
            setattr(self, name, size)

    def draw(self, name, *shape, dtype="BF16"):
        self.tensors[name] = files.values(self.rng, dtype, shape)

    def attention(self, at, hidden, queries, keys):
        for part, count in (("q", queries), ("k", keys), ("v", keys)):
            self.draw(f"{at}{part}_proj.weight", count * HEAD, hidden)
        self.draw(f"{at}o_proj.weight", hidden, queries * HEAD)

    def mlp(self, at, hidden, inner):
        for part, shape in (("gate", (inner, hidden)), ("up", (inner, hidden)), ("down", (hidden, inner))):
            self.draw(f"{at}{part}_proj.weight", *shape)

    def scales(self):
        """A scale for each block of 128 x 128 of every projection."""
        for name in [name for name in self.tensors if "_proj" in name]:
            rows, columns = self.tensors[name].shape
            self.draw(f"{name}_scale_inv", -(-rows // 128), -(-columns // 128), dtype="F32")

    def ends(self, hidden, words):
        self.draw("model.embed_tokens.weight", words, hidden)
        self.draw("lm_head.weight", words, hidden)
        self.draw("model.norm.weight", hidden)

    def of_rank(self, rank, ranks):
        found = {name: self.tensors[name] for name in self.tensors if "norm" in name or ".mlp.gate." in name}
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            found[name] = even(self.tensors[name], rank, ranks)
        return found

    def fuse_attention(self, found, at, rank, ranks):
        parts = [heads(self.tensors[f"{at}{part}_proj.weight"], HEAD, rank, ranks) for part in "qkv"]
        found[f"{at}qkv_proj.weight"] = np.concatenate(parts)
        found[f"{at}o_proj.weight"] = heads(self.tensors[f"{at}o_proj.weight"], HEAD, rank, ranks, 1)

    def fuse_mlp(self, found, at, rank, ranks, suffixes=("weight",)):
        for suffix in suffixes:
            gate, up, down = (self.tensors[f"{at}{part}_proj.{suffix}"] for part in ("gate", "up", "down"))
            found[f"{at}gate_up_proj.{suffix}"] = np.concatenate([even(gate, rank, ranks), even(up, rank, ranks)])
            found[f"{at}down_proj.{suffix}"] = even(down, rank, ranks, 1)

    def stack(self, at, part, count, suffix="weight"):
        return np.stack([self.tensors[f"{at}{e}.{part}_proj.{suffix}"] for e in range(count)])


class Llama(Model):
    layers, hidden, queries, keys, inner, words = 2, 64, 16, 4, 192, 256

    def make(self):
        self.ends(self.hidden, self.words)
        for n in range(self.layers):
            self.attention(f"model.layers.{n}.self_attn.", self.hidden, self.queries, self.keys)
            self.mlp(f"model.layers.{n}.mlp.", self.hidden, self.inner)
            self.draw(f"model.layers.{n}.input_layernorm.weight", self.hidden)
            self.draw(f"model.layers.{n}.post_attention_layernorm.weight", self.hidden)
        return self

    def of_rank(self, rank, ranks):
        found = super().of_rank(rank, ranks)
        for n in range(self.layers):
            self.fuse_attention(found, f"model.layers.{n}.self_attn.", rank, ranks)
            self.fuse_mlp(found, f"model.layers.{n}.mlp.", rank, ranks)
        return found


class Megatron:
    """What models of Megatron share. A Model is the other base."""

    def ends_of_rank(self, rank, ranks, embedding="model.embed_tokens", norms=("decoder.final_layernorm", "model.norm")):
        words = -(-self.words // (ranks * 128)) * ranks * 128
        found = {f"{norms[0]}.weight": self.tensors[f"{norms[1]}.weight"]}
        for name, ours in (("embedding.word_embeddings", embedding), ("output_layer", "lm_head")):
            found[f"{name}.weight"] = even(padded(self.tensors[f"{ours}.weight"], words), rank, ranks)
        return found

    def shared(self, rank, ranks):
        found = self.ends_of_rank(rank, ranks)
        for n in range(self.layers):
            at, ours = f"decoder.layers.{n}.self_attention.", f"model.layers.{n}."
            qkv = in_groups([self.tensors[f"{ours}self_attn.{part}_proj.weight"] for part in "qkv"], self.keys)
            found[f"{at}linear_qkv.weight"] = even(qkv, rank, ranks)
            found[f"{at}linear_proj.weight"] = even(self.tensors[f"{ours}self_attn.o_proj.weight"], rank, ranks, 1)
            found[f"{at}linear_qkv.layer_norm_weight"] = self.tensors[f"{ours}input_layernorm.weight"]
        return found

    def add_mlp(self, found, ours, first, second, rank, ranks):
        gate, up, down = (self.tensors[f"{ours}.{part}_proj.weight"] for part in ("gate", "up", "down"))
        found[first] = np.concatenate([even(gate, rank, ranks), even(up, rank, ranks)])
        found[second] = even(down, rank, ranks, 1)


class MegatronLlama(Megatron, Llama):
    """The tensors of a Llama, on ranks as Megatron has them."""
    words = 1000

    def of_rank(self, rank, ranks):
        found = self.shared(rank, ranks)
        for n in range(self.layers):
            at, ours = f"decoder.layers.{n}.mlp.", f"model.layers.{n}."
            self.add_mlp(found, f"{ours}mlp", f"{at}linear_fc1.weight", f"{at}linear_fc2.weight", rank, ranks)
            found[f"{at}linear_fc1.layer_norm_weight"] = self.tensors[f"{ours}post_attention_layernorm.weight"]
        return found


class QwenMoe(Model):
    layers, hidden, queries, keys, inner, experts, words = 2, 64, 16, 2, 48, 8, 256

    def make(self):
        self.ends(self.hidden, self.words)
        for n in range(self.layers):
            at = f"model.layers.{n}."
            self.attention(f"{at}self_attn.", self.hidden, self.queries, self.keys)
            for norm, extent in (("self_attn.q_norm", HEAD), ("self_attn.k_norm", HEAD), ("input_layernorm", self.hidden),
                                 ("post_attention_layernorm", self.hidden)):
                self.draw(f"{at}{norm}.weight", extent)
            self.draw(f"{at}mlp.gate.weight", self.experts, self.hidden)
            for e in range(self.experts):
                self.mlp(f"{at}mlp.experts.{e}.", self.hidden, self.inner)
        return self

    def of_rank(self, rank, ranks):
        found = super().of_rank(rank, ranks)
        for n in range(self.layers):
            at = f"model.layers.{n}.mlp.experts."
            self.fuse_attention(found, f"model.layers.{n}.self_attn.", rank, ranks)
            gate, up, down = (self.stack(at, part, self.experts) for part in ("gate", "up", "down"))
            found[f"{at}w13_weight"] = np.concatenate([even(gate, rank, ranks, 1), even(up, rank, ranks, 1)], axis=1)
            found[f"{at}w2_weight"] = even(down, rank, ranks, 2)
        return found


class MegatronQwenMoe(Megatron, QwenMoe):
    """The tensors of a Qwen3-MoE, on ranks as Megatron has them, without expert parallelism."""
    words = 1000

    def of_rank(self, rank, ranks):
        found = self.shared(rank, ranks)
        for n in range(self.layers):
            at, ours = f"decoder.layers.{n}.", f"model.layers.{n}."
            for name, norm in (("self_attention.q_layernorm", "self_attn.q_norm"), ("self_attention.k_layernorm", "self_attn.k_norm"),
                               ("pre_mlp_layernorm", "post_attention_layernorm"), ("mlp.router", "mlp.gate")):
                found[f"{at}{name}.weight"] = self.tensors[f"{ours}{norm}.weight"]
            for e in range(self.experts):
                self.add_mlp(found, f"{ours}mlp.experts.{e}", f"{at}mlp.experts.linear_fc1.weight{e}",
                             f"{at}mlp.experts.linear_fc2.weight{e}", rank, ranks)
        return found


class ExpertParallelQwenMoe(MegatronQwenMoe):
    """The same on a mesh tp x ep=2: each rank has a part of half of the experts."""

    def of_rank(self, rank, ranks):
        tp, ep = divmod(rank, 2)
        found = super().of_rank(tp, ranks // 2)
        others = [f".weight{e}" for e in range(self.experts) if e * 2 // self.experts != ep]
        return {name: array for name, array in found.items() if not name.endswith(tuple(others))}


class DeepSeek(Model):
    hidden, queries, experts, words = 256, 16, 8, 256

    def make(self):
        self.ends(self.hidden, self.words)
        for n in range(2):
            at = f"model.layers.{n}."
            for part, shape in (("q_a_proj", (256, self.hidden)), ("kv_a_proj_with_mqa", (192, self.hidden)),
                                ("q_b_proj", (self.queries * 192, 256)), ("kv_b_proj", (self.queries * 256, 128)),
                                ("o_proj", (self.hidden, self.queries * HEAD))):
                self.draw(f"{at}self_attn.{part}.weight", *shape)
            self.draw(f"{at}self_attn.q_a_layernorm.weight", 256)
            self.draw(f"{at}self_attn.kv_a_layernorm.weight", 128)
            self.draw(f"{at}input_layernorm.weight", self.hidden)
            self.draw(f"{at}post_attention_layernorm.weight", self.hidden)
        self.mlp("model.layers.0.mlp.", self.hidden, 2048)
        self.mlp("model.layers.1.mlp.shared_experts.", self.hidden, 1024)
        self.draw("model.layers.1.mlp.gate.weight", self.experts, self.hidden)
        self.draw("model.layers.1.mlp.gate.e_score_correction_bias", self.experts, dtype="F32")
        for e in range(self.experts):
            self.mlp(f"model.layers.1.mlp.experts.{e}.", self.hidden, 128)
        self.scales()
        return self

    def of_rank(self, rank, ranks):
        found = super().of_rank(rank, ranks)
        both = ("weight", "weight_scale_inv")
        for n in range(2):
            at = f"model.layers.{n}.self_attn."
            for suffix in both:
                first, second = (self.tensors[f"{at}{part}.{suffix}"] for part in ("q_a_proj", "kv_a_proj_with_mqa"))
                found[f"{at}fused_qkv_a_proj.{suffix}"] = np.concatenate([first, second])
                for part, axis in (("q_b_proj", 0), ("kv_b_proj", 0), ("o_proj", 1)):
                    found[f"{at}{part}.{suffix}"] = even(self.tensors[f"{at}{part}.{suffix}"], rank, ranks, axis)
        self.fuse_mlp(found, "model.layers.0.mlp.", rank, ranks, both)
        self.fuse_mlp(found, "model.layers.1.mlp.shared_experts.", rank, ranks, both)
        at = "model.layers.1.mlp.experts."
        for suffix in both:
            gate, up, down = (self.stack(at, part, self.experts, suffix) for part in ("gate", "up", "down"))
            found[f"{at}w13_{suffix}"] = even(np.concatenate([gate, up], axis=1), rank, ranks)
            found[f"{at}w2_{suffix}"] = even(down, rank, ranks)
        return found


class MegatronDeepSeek(Megatron, DeepSeek):
    """The tensors of a DeepSeek-V3 in bf16, on ranks as Megatron has them: layer 0 is dense, and each rank has whole
    experts."""
    words, layers = 1000, 2

    def scales(self):
        """bf16 has none."""

    def of_rank(self, rank, ranks):
        found = self.ends_of_rank(rank, ranks)
        for n in range(self.layers):
            at, ours = f"decoder.layers.{n}.", f"model.layers.{n}."
            found[f"{at}input_layernorm.weight"] = self.tensors[f"{ours}input_layernorm.weight"]
            for name, part in (("q_down_proj", "q_a_proj"), ("kv_down_proj", "kv_a_proj_with_mqa")):
                found[f"{at}self_attention.linear_{name}.weight"] = self.tensors[f"{ours}self_attn.{part}.weight"]
            for part in ("q", "kv"):
                name = f"{at}self_attention.linear_{part}_up_proj"
                found[f"{name}.layer_norm_weight"] = self.tensors[f"{ours}self_attn.{part}_a_layernorm.weight"]
                found[f"{name}.weight"] = even(self.tensors[f"{ours}self_attn.{part}_b_proj.weight"], rank, ranks)
            found[f"{at}self_attention.linear_proj.weight"] = even(self.tensors[f"{ours}self_attn.o_proj.weight"], rank, ranks, 1)
            norm = "pre_mlp_layernorm.weight" if n > 0 else "mlp.linear_fc1.layer_norm_weight"
            found[at + norm] = self.tensors[f"{ours}post_attention_layernorm.weight"]
        for at, ours in (("0.mlp.", "0.mlp"), ("1.mlp.shared_experts.", "1.mlp.shared_experts")):
            names = [f"decoder.layers.{at}linear_fc{k}.weight" for k in (1, 2)]
            self.add_mlp(found, f"model.layers.{ours}", *names, rank, ranks)
        at, ours = "decoder.layers.1.mlp.", "model.layers.1.mlp."
        found[f"{at}router.weight"] = self.tensors[f"{ours}gate.weight"]
        found[f"{at}router.expert_bias"] = self.tensors[f"{ours}gate.e_score_correction_bias"]
        for e in range(rank * self.experts // ranks, (rank + 1) * self.experts // ranks):
            names = [f"{at}experts.linear_fc{k}.weight{e}" for k in (1, 2)]
            self.add_mlp(found, f"{ours}experts.{e}", *names, 0, 1)
        return found


class GptOss(Model):
    layers, hidden, inner, experts, queries, keys = 2, 32, 24, 4, 16, 4
    head, words = 64, 64

    def make(self):
        self.ends(self.hidden, self.words)
        for n in range(self.layers):
            at = f"model.layers.{n}."
            for part, count in (("q", self.queries), ("k", self.keys), ("v", self.keys)):
                self.draw(f"{at}self_attn.{part}_proj.weight", count * self.head, self.hidden)
                self.draw(f"{at}self_attn.{part}_proj.bias", count * self.head)
            for name, shape in (("self_attn.o_proj.weight", (self.hidden, self.queries * self.head)),
                                ("self_attn.o_proj.bias", (self.hidden,)), ("self_attn.sinks", (self.queries,)),
                                ("mlp.router.weight", (self.experts, self.hidden)), ("mlp.router.bias", (self.experts,)),
                                ("input_layernorm.weight", (self.hidden,)), ("post_attention_layernorm.weight", (self.hidden,)),
                                ("mlp.experts.gate_up_proj_bias", (self.experts, 2 * self.inner)),
                                ("mlp.experts.down_proj_bias", (self.experts, self.hidden))):
                self.draw(at + name, *shape)
            self.draw_experts(f"{at}mlp.experts.")
        return self

    def draw_experts(self, at):
        self.draw(f"{at}gate_up_proj", self.experts, self.hidden, 2 * self.inner)
        self.draw(f"{at}down_proj", self.experts, self.inner, self.hidden)

    def experts_of_rank(self, at, rank, ranks):
        return {f"{at}w13_weight": even(self.tensors[f"{at}gate_up_proj"].transpose(0, 2, 1), rank, ranks, 1),
                f"{at}w13_bias": even(self.tensors[f"{at}gate_up_proj_bias"], rank, ranks, 1),
                f"{at}w2_weight": even(self.tensors[f"{at}down_proj"].transpose(0, 2, 1), rank, ranks, 2)}

    def of_rank(self, rank, ranks):
        found = {name: array for name, array in self.tensors.items()
                 if "norm" in name or "router" in name or name.endswith("o_proj.bias")}
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            found[name] = even(self.tensors[name], rank, ranks)
        for n in range(self.layers):
            at = f"model.layers.{n}.self_attn."
            for kind in ("weight", "bias"):
                found[f"{at}qkv_proj.{kind}"] = np.concatenate(
                    [heads(self.tensors[f"{at}{part}_proj.{kind}"], self.head, rank, ranks) for part in "qkv"])
            found[f"{at}o_proj.weight"] = even(self.tensors[f"{at}o_proj.weight"], rank, ranks, 1)
            found[f"{at}sinks"] = even(self.tensors[f"{at}sinks"], rank, ranks)
            at = f"model.layers.{n}.mlp.experts."
            found.update(self.experts_of_rank(at, rank, ranks))
            found[f"{at}w2_bias"] = self.tensors[f"{at}down_proj_bias"]
        return found


class GptOssMxfp4(GptOss):
    """Experts as published: blocks of 32 values, 16 bytes each, and a byte of scale for each block. A rank has
    ceil(blocks / ranks) blocks of a row of w2, and the rows of w13 that make their values."""
    hidden, inner = 64, 480

    def draw_experts(self, at):
        for name, rows, values in (("gate_up_proj", 2 * self.inner, self.hidden), ("down_proj", self.hidden, self.inner)):
            self.draw(f"{at}{name}_blocks", self.experts, rows, values // 32, 16, dtype="U8")
            self.draw(f"{at}{name}_scales", self.experts, rows, values // 32, dtype="U8")

    def experts_of_rank(self, at, rank, ranks):
        own = -(-(self.inner // 32) // ranks)
        rows, blocks = slice(rank * own * 64, (rank + 1) * own * 64), slice(rank * own, (rank + 1) * own)
        flat = lambda array: array.reshape(*array.shape[:2], -1)
        gate_up, down = (self.tensors[f"{at}{name}_blocks"] for name in ("gate_up_proj", "down_proj"))
        return {f"{at}w13_weight": flat(gate_up[:, rows]),
                f"{at}w13_weight_scale": self.tensors[f"{at}gate_up_proj_scales"][:, rows],
                f"{at}w13_bias": self.tensors[f"{at}gate_up_proj_bias"][:, rows],
                f"{at}w2_weight": flat(down[:, :, blocks]),
                f"{at}w2_weight_scale": self.tensors[f"{at}down_proj_scales"][:, :, blocks]}


class MegatronGptOss(Megatron, GptOss):
    """The tensors of a gpt-oss in bf16, on ranks as Megatron has them."""
    words = 1000

    def of_rank(self, rank, ranks):
        found = self.shared(rank, ranks)
        for n in range(self.layers):
            at, ours = f"decoder.layers.{n}.", f"model.layers.{n}."
            biases = [self.tensors[f"{ours}self_attn.{part}_proj.bias"][:, None] for part in "qkv"]
            found[f"{at}self_attention.linear_qkv.bias"] = even(in_groups(biases, self.keys)[:, 0], rank, ranks)
            found[f"{at}self_attention.linear_proj.bias"] = self.tensors[f"{ours}self_attn.o_proj.bias"]
            sinks = self.tensors[f"{ours}self_attn.sinks"]
            found[f"{at}self_attention.core_attention.softmax_offset"] = even(sinks, rank, ranks)
            found[f"{at}pre_mlp_layernorm.weight"] = self.tensors[f"{ours}post_attention_layernorm.weight"]
            for kind in ("weight", "bias"):
                found[f"{at}mlp.router.{kind}"] = self.tensors[f"{ours}mlp.router.{kind}"]
            for e in range(self.experts):
                self.add_expert(found, f"{at}mlp.experts.linear_", f"{ours}mlp.experts.", e, rank, ranks)
        return found

    def add_expert(self, found, at, ours, e, rank, ranks):
        gate_up, bias = self.tensors[f"{ours}gate_up_proj"][e].T, self.tensors[f"{ours}gate_up_proj_bias"][e]
        for kind, pairs in (("weight", gate_up), ("bias", bias)):
            found[f"{at}fc1.{kind}{e}"] = np.concatenate([even(pairs[k::2], rank, ranks) for k in (0, 1)])
        found[f"{at}fc2.weight{e}"] = even(self.tensors[f"{ours}down_proj"][e].T, rank, ranks, 1)
        found[f"{at}fc2.bias{e}"] = self.tensors[f"{ours}down_proj_bias"][e]


class Mamba2(Model):
    """The 2.7B model's extents but the hidden one: one group of 128 states, 80 heads of 64."""
    layers, hidden, inner, states, count, words = 2, 8, 5120, 128, 80, 256

    def make(self):
        self.draw("backbone.embeddings.weight", self.words, self.hidden)
        self.draw("backbone.norm_f.weight", self.hidden)
        for n in range(self.layers):
            at = f"backbone.layers.{n}."
            self.draw(f"{at}norm.weight", self.hidden)
            self.draw(f"{at}mixer.in_proj.weight", 2 * self.inner + 2 * self.states + self.count, self.hidden)
            self.draw(f"{at}mixer.conv1d.weight", self.inner + 2 * self.states, 1, 4)
            self.draw(f"{at}mixer.conv1d.bias", self.inner + 2 * self.states)
            for name in ("A_log", "D", "dt_bias"):
                self.draw(f"{at}mixer.{name}", self.count, dtype="F32")
            self.draw(f"{at}mixer.norm.weight", self.inner)
            self.draw(f"{at}mixer.out_proj.weight", self.hidden, self.inner)
        return self

    def of_rank(self, rank, ranks):
        found = {"backbone.embeddings.weight": even(self.tensors["backbone.embeddings.weight"], rank, ranks),
                 "backbone.norm_f.weight": self.tensors["backbone.norm_f.weight"]}
        inner = self.inner
        for n in range(self.layers):
            at = f"backbone.layers.{n}.mixer."
            found[f"backbone.layers.{n}.norm.weight"] = self.tensors[f"backbone.layers.{n}.norm.weight"]
            z, x, states, dt = np.split(self.tensors[f"{at}in_proj.weight"],
                                        [inner, 2 * inner, 2 * inner + 2 * self.states])
            found[f"{at}in_proj.weight"] = np.concatenate(
                [even(z, rank, ranks), even(x, rank, ranks), states, even(dt, rank, ranks)])
            for name in ("conv1d.weight", "conv1d.bias"):
                x, states = np.split(self.tensors[at + name], [inner])
                found[at + name] = np.concatenate([even(x, rank, ranks), states])
            for name in ("A_log", "D", "dt_bias", "norm.weight"):
                found[at + name] = even(self.tensors[at + name], rank, ranks)
            found[f"{at}out_proj.weight"] = even(self.tensors[f"{at}out_proj.weight"], rank, ranks, 1)
        return found


class MegatronMamba2(Megatron, Mamba2):
    """Codestral 7B's extents but the hidden one, on ranks as Megatron has them: 8 groups, which the ranks divide."""
    inner, states, count, words = 8192, 1024, 128, 1000

    def make(self):
        super().make()
        self.draw("lm_head.weight", self.words, self.hidden)
        return self

    def of_rank(self, rank, ranks):
        found = self.ends_of_rank(rank, ranks, "backbone.embeddings", ("decoder.final_norm", "backbone.norm_f"))
        parts = [self.inner, self.inner, self.states, self.states]  # z, x, B and C; dt follows
        for n in range(self.layers):
            at, ours = f"decoder.layers.{n}.mixer.", f"backbone.layers.{n}.mixer."
            found[f"{at}in_proj.layer_norm_weight"] = self.tensors[f"backbone.layers.{n}.norm.weight"]
            for name, ends in (("in_proj.weight", np.cumsum(parts)), ("conv1d.weight", np.cumsum(parts[1:3])),
                               ("conv1d.bias", np.cumsum(parts[1:3]))):
                found[at + name] = np.concatenate([even(part, rank, ranks) for part in np.split(self.tensors[ours + name], ends)])
            for name in ("A_log", "D", "dt_bias", "norm.weight"):
                found[at + name] = even(self.tensors[ours + name], rank, ranks)
            found[f"{at}out_proj.weight"] = even(self.tensors[f"{ours}out_proj.weight"], rank, ranks, 1)
        return found
