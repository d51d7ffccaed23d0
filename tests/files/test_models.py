"""The rules in docs/models: checkpoints with the names of Hugging Face become files of ranks, as vLLM reads them, and a
Llama goes on to other numbers of ranks and back. Every element is compared with arrays that numpy cuts here."""

import suite
from suite import np

import checkpoints as files
from checkpoints import same
from models import (HEAD, MODELS, DeepSeek, GptOss, GptOssMxfp4, Llama, Mamba2, MegatronDeepSeek, MegatronGptOss, MegatronLlama,
                    MegatronMamba2, QwenMoe)


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

    def test_gpt_oss(self):
        self.convert("gpt_oss_to_vllm", GptOss(self.rng).make())

    def test_gpt_oss_in_mxfp4(self):
        self.convert("gpt_oss_mxfp4_to_vllm", GptOssMxfp4(self.rng).make())

    def test_llama_to_megatron(self):
        self.convert("llama_to_megatron", MegatronLlama(self.rng, keys=8, queries=32).make())

    def test_gpt_oss_to_megatron(self):
        self.convert("gpt_oss_to_megatron", MegatronGptOss(self.rng, keys=8, queries=64, experts=8).make(), "{e:32}")

    def test_mamba2_to_megatron(self):
        self.convert("mamba2_to_megatron", MegatronMamba2(self.rng).make())

    def test_deepseek_v3_to_megatron(self):
        """The first of two layers is dense."""
        rules = self.rules("deepseek_v3_to_megatron", 4, "{e:256}").replace("{n:3}", "{n:1}").replace("{n:3:61}", "{n:1:2}")
        model = MegatronDeepSeek(self.rng).make()
        files.write(self.path("model.safetensors"), model.tensors)
        self.runs("convert", "model.safetensors", "tp4", "--to", "ranks", "--rules", self.text("4.rules", rules))
        self.assert_ranks("tp4", model, 4)

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
                   f"model.layers.{n}.input_layernorm.weight bf16[64]\n"
                   f"model.layers.{n}.post_attention_layernorm.weight bf16[64]\n" for n in range(model.layers)]
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
