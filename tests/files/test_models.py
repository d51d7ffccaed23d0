"""The rules in docs/models: checkpoints with the names of Hugging Face become files of ranks, as vLLM reads them, and a
Llama goes on to other numbers of ranks and back. Every element is compared with arrays that numpy cuts here."""

import pathlib

import suite
from suite import np

import checkpoints as files
from checkpoints import same

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


class Model:
    """The tensors of a checkpoint and of each rank."""

    def __init__(self, rng):
        self.rng = rng
        self.tensors = {}

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
    layers, hidden, queries, keys, inner = 2, 64, 16, 4, 192

    def make(self):
        self.ends(self.hidden, 256)
        for n in range(self.layers):
            self.attention(f"model.layers.{n}.self_attn.", self.hidden, self.queries, self.keys)
            self.mlp(f"model.layers.{n}.mlp.", self.hidden, self.inner)
            self.draw(f"model.layers.{n}.input_layernorm.weight", self.hidden)
        return self

    def of_rank(self, rank, ranks):
        found = super().of_rank(rank, ranks)
        for n in range(self.layers):
            self.fuse_attention(found, f"model.layers.{n}.self_attn.", rank, ranks)
            self.fuse_mlp(found, f"model.layers.{n}.mlp.", rank, ranks)
        return found


class QwenMoe(Model):
    layers, hidden, queries, keys, inner, experts = 2, 64, 16, 2, 48, 8

    def make(self):
        self.ends(self.hidden, 256)
        for n in range(self.layers):
            at = f"model.layers.{n}."
            self.attention(f"{at}self_attn.", self.hidden, self.queries, self.keys)
            self.draw(f"{at}self_attn.q_norm.weight", HEAD)
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


class DeepSeek(Model):
    hidden, queries, experts = 256, 16, 8

    def make(self):
        self.ends(self.hidden, 256)
        for n in range(2):
            at = f"model.layers.{n}."
            for part, shape in (("q_a_proj", (256, self.hidden)), ("kv_a_proj_with_mqa", (192, self.hidden)),
                                ("q_b_proj", (self.queries * 192, 256)), ("kv_b_proj", (self.queries * 256, 128)),
                                ("o_proj", (self.hidden, self.queries * HEAD))):
                self.draw(f"{at}self_attn.{part}.weight", *shape)
            self.draw(f"{at}self_attn.q_a_layernorm.weight", 256)
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


class Mamba2(Model):
    """The 2.7B model's extents but the hidden one: one group of 128 states, 80 heads of 64."""
    layers, hidden, inner, states, count = 2, 8, 5120, 128, 80

    def make(self):
        self.draw("backbone.embeddings.weight", 256, self.hidden)
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


class Models(suite.Case):
    def rules(self, name, ranks, experts=""):
        text = (MODELS / f"{name}.rules").read_text(encoding="utf-8")
        self.assertIn("target tp=8\n", text)
        text = text.replace("target tp=8\n", f"target tp={ranks}\n")
        return text.replace(experts, "{e:8}") if experts else text

    def assert_ranks(self, folder, model, ranks):
        all_found = files.read_ranks(self.path(folder))
        self.assertEqual(len(all_found), ranks)
        for rank, found in enumerate(all_found):
            wanted = model.of_rank(rank, ranks)
            self.assertEqual(set(found), set(wanted))
            for name, array in wanted.items():
                self.assertTrue(same(found[name], np.ascontiguousarray(array)), f"{name} on rank {rank} of {ranks}")

    def convert(self, name, model, experts=""):
        files.write(self.path("model.safetensors"), model.tensors)
        for ranks in (2, 4, 8):
            rules = self.text(f"{ranks}.rules", self.rules(name, ranks, experts))
            self.runs("convert", "model.safetensors", f"tp{ranks}", "--to", "ranks", "--rules", rules)
            self.assert_ranks(f"tp{ranks}", model, ranks)

    def test_qwen_moe(self):
        self.convert("qwen_moe_to_vllm", QwenMoe(self.rng).make(), "{e:128}")

    def test_deepseek_v3(self):
        self.convert("deepseek_v3_to_vllm", DeepSeek(self.rng).make(), "{e:256}")

    def test_mamba2(self):
        self.convert("mamba2_to_ranks", Mamba2(self.rng).make())

    def test_llama_to_other_numbers_of_ranks_and_back(self):
        model = Llama(self.rng).make()
        self.convert("llama_to_vllm", model)
        queries, keys, inner = model.queries * HEAD, model.keys * HEAD, model.inner
        total = queries + 2 * keys
        qkv, gate_up = "model.layers.{n}.self_attn.qkv_proj.weight", "model.layers.{n}.mlp.gate_up_proj.weight"
        common = ("model.embed_tokens.weight = [tp, -]\nlm_head.weight = [tp, -]\n*norm.weight = -\n"
                  "*.o_proj.weight = [-, tp heads of 128]\n*.down_proj.weight = [-, tp]\n")
        source = (f"source tp=4\n{common}{qkv} = [tp{{{queries},{keys},{keys}}} heads of 128, -]\n"
                  f"{gate_up} = [tp{{{inner},{inner}}}, -]\n")
        slices = [f"{qkv}[{begin}:{end}, :]" for begin, end in
                  ((0, queries), (queries, queries + keys), (queries + keys, total))]
        halves = [f"{gate_up}[0:{inner}, :]", f"{gate_up}[{inner}:{2 * inner}, :]"]
        tensors = [f"model.layers.{n}.self_attn.qkv_proj.weight bf16[{total},64]\n"
                   f"model.layers.{n}.mlp.gate_up_proj.weight bf16[{2 * inner},64]\n"
                   f"model.layers.{n}.self_attn.o_proj.weight bf16[64,{queries}]\n"
                   f"model.layers.{n}.mlp.down_proj.weight bf16[64,{inner}]\n"
                   f"model.layers.{n}.input_layernorm.weight bf16[64]\n" for n in range(model.layers)]
        self.text("whole.list", "".join(tensors) + "model.embed_tokens.weight bf16[256,64]\n"
                  "lm_head.weight bf16[256,64]\nmodel.norm.weight bf16[64]\n")
        for ranks in (2, 8):
            rules = (f"{source}target tp={ranks}\n{common}{qkv} = [tp heads of 128, -] <- {' + '.join(slices)}\n"
                     f"{gate_up} = [tp, -] <- {' + '.join(halves)}\n")
            self.text("again.rules", rules)
            self.runs("convert", "tp4", f"again{ranks}", "--to", "ranks", "--rules", "again.rules", "--list",
                      "whole.list")
            self.assert_ranks(f"again{ranks}", model, ranks)
        back = source + "target file=1\notherwise = -\n"
        for part, piece in zip("qkv", slices):
            back += f"model.layers.{{n}}.self_attn.{part}_proj.weight = - <- {piece}\n"
        for part, piece in zip(("gate", "up"), halves):
            back += f"model.layers.{{n}}.mlp.{part}_proj.weight = - <- {piece}\n"
        self.text("back.rules", back)
        self.runs("convert", "tp4", "back.safetensors", "--rules", "back.rules", "--list", "whole.list")
        found = files.read(self.path("back.safetensors"))[0]
        self.assertEqual(set(found), set(model.tensors))
        for name, array in model.tensors.items():
            self.assertTrue(same(found[name], array), name)

    def test_flattened_optimizer_states(self):
        """A tile over tp that is flattened and dealt out over dp, as Megatron's and veScale's. numpy cuts it here."""
        tensors = {"w": self.rng.standard_normal((12, 8)).astype("f4"), "b": self.rng.standard_normal(24).astype("f4"),
                   "v": self.rng.integers(0, 99, (4, 6, 2)).astype("i2")}
        files.write(self.path("model.safetensors"), tensors)
        rules = "w = [(-, tp)@dp[1,3,2]]\nb = [dp]\nv = [(tp, -, -)@dp]\n"
        self.runs("convert", "model.safetensors", "flat", "--to", "ranks", "--rules",
                  self.text("flat.rules", f"target tp=2,dp=3\n{rules}"))
        for rank, found in enumerate(files.read_ranks(self.path("flat"))):
            tp, dp = divmod(rank, 3)
            wanted = {"w": np.split(np.split(tensors["w"], 2, 1)[tp].ravel(), (8, 32))[dp],
                      "b": np.split(tensors["b"], 3)[dp], "v": np.split(np.split(tensors["v"], 2)[tp].ravel(), 3)[dp]}
            self.assertEqual(set(found), set(wanted))
            for name, array in wanted.items():
                self.assertTrue(same(found[name], array), f"{name} on rank {rank}")
        self.text("whole.list", "w f32[12,8]\nb f32[24]\nv i16[4,6,2]\n")
        there = f"source tp=2,dp=3\n{rules}"
        others = "w = [(d, -)@t[1,0]]\nb = -\nv = [(-, t, -)@d]\n"
        self.runs("convert", "flat", "again", "--to", "ranks", "--list", "whole.list", "--rules",
                  self.text("again.rules", f"{there}target d=3,t=2\n{others}"))
        for folder, said in (("flat", there), ("again", f"source d=3,t=2\n{others}")):
            self.runs("convert", folder, f"{folder}.safetensors", "--list", "whole.list", "--rules",
                      self.text("back.rules", f"{said}target file=1\notherwise = -\n"))
            found = files.read(self.path(f"{folder}.safetensors"))[0]
            for name, array in tensors.items():
                self.assertTrue(same(found[name], array), name)
        for form, wrong in (("dcp", "is flattened, and torch DCP writes boxes"), ("single", "is cut, and the form single")):
            said = self.refused("convert", "model.safetensors", "no", "--to", form, "--rules", "flat.rules")
            self.assertIn(wrong, said)
        self.assertIn("no list says the whole shapes", self.refused(
            "convert", "flat", "no.safetensors", "--rules", self.text("no.rules", f"{there}target file=1\notherwise = -\n")))

    def test_heads_that_would_be_cut_are_refused(self):
        files.write(self.path("model.safetensors"), Llama(self.rng).make().tensors)
        rules = self.text("cut.rules", self.rules("llama_to_vllm", 3))
        said = self.refused("convert", "model.safetensors", "cut", "--to", "ranks", "--rules", rules)
        self.assertIn("part 1: 16 heads of 128 for the 3 shards of tp would be cut", said)
        self.assertIn("model.layers.0.self_attn.qkv_proj.weight", said)

    def test_inspect_shows_what_each_rank_gets(self):
        files.write(self.path("model.safetensors"), QwenMoe(self.rng).make().tensors)
        rules = self.text("8.rules", self.rules("qwen_moe_to_vllm", 8, "{e:128}"))
        found = self.runs("inspect", "model.safetensors", "--rules", rules, "--tensor",
                          "model.layers.1.mlp.experts.w13_weight")
        lines = found.splitlines()
        self.assertEqual(lines[0], "model.layers.1.mlp.experts.w13_weight bf16[8,96,64]")
        at = "model.layers.1.mlp.experts."
        for part in ("0.gate_proj", "7.up_proj"):
            self.assertIn(f"{at}{part}.weight[42:48,0:64]", found)
        self.assertNotIn("layers.0.", found)
        said = self.refused("inspect", "model.safetensors", "--rules", rules, "--tensor", "model.layers.2")
        self.assertIn("the rules make no tensor 'model.layers.2'", said)


if __name__ == "__main__":
    suite.main()
