"""Rules with steps in slices, groups, permuted parts and padding, on files. Every element is compared with arrays that
numpy cuts here. The rules in docs/models for Megatron are among them."""

import suite
from suite import np

import checkpoints as files
from checkpoints import same
from models import MODELS, even, heads, in_groups, padded


class Slices(suite.Case):
    def write(self, tensors, name="model.safetensors"):
        files.write(self.path(name), tensors)

    def draw(self, *shape, dtype="BF16"):
        return files.values(self.rng, dtype, shape)

    def convert(self, source, target, rules, *more):
        self.text("rules", rules)
        return self.runs("convert", source, target, "--rules", "rules", *more)

    def assert_tensors(self, found, wanted):
        self.assertEqual(set(found), set(wanted))
        for name, array in wanted.items():
            self.assertTrue(same(found[name], np.ascontiguousarray(array)), name)

    def assert_ranks(self, folder, ranks, wanted_of):
        found = files.read_ranks(self.path(folder))
        self.assertEqual(len(found), ranks)
        for rank in range(ranks):
            self.assert_tensors(found[rank], wanted_of(rank))

    def test_rows_that_alternate_and_back(self):
        both = self.draw(4, 64, 16)
        self.write({"l.0.gate_up": both})
        self.convert("model.safetensors", "apart.safetensors", "target file=1\n"
                     "l.{n}.gate = - <- l.{n}.gate_up[:, 0::2, :]\nl.{n}.up = - <- l.{n}.gate_up[:, 1::2, :]\n")
        apart = {"l.0.gate": both[:, 0::2, :], "l.0.up": both[:, 1::2, :]}
        self.assert_tensors(files.read(self.path("apart.safetensors"))[0], apart)
        self.convert("apart.safetensors", "again.safetensors", "target file=1\n"
                     "l.{n}.gate_up = - <- l.{n}.gate ++ l.{n}.up along 1 in 32 groups\n")
        self.assert_tensors(files.read(self.path("again.safetensors"))[0], {"l.0.gate_up": both})

    def test_files_of_ranks_that_cut_steps_and_groups(self):
        """Cuts of the files are within steps and groups at both ends."""
        rows = self.draw(30, 8)
        self.write({"w": rows})
        self.convert("model.safetensors", "three", "target tp=3\nw = [tp[7,10,13], -]\n", "--to", "ranks")
        self.text("w.list", "w bf16[30,8]\n")
        self.convert("three", "mixed", "source tp=3\nw = [tp[7,10,13], -]\ntarget tp=4\n"
                     "a = [tp[1,2,3,4], -] <- w[1::3, :]\nalso b = [tp, -] <- w[0:2 of 5, :] ++ w[3:4 of 5, :] in 6 groups\n"
                     "also c = [-, tp[5,5,10,10]] <- w[:, 2:8:2] permute(1,0)\n", "--to", "ranks", "--list", "w.list")
        b = in_groups([rows[[i for i in range(30) if i % 5 < 2]], rows[3::5]], 6)
        c = rows[:, 2:8:2].T
        parts = [np.split(array, cuts, axis) for array, cuts, axis in
                 ((rows[1::3], [1, 3, 6], 0), (b, [5, 10, 15], 0), (c, [5, 10, 20], 1))]
        self.assert_ranks("mixed", 4, lambda rank: dict(zip("abc", (part[rank] for part in parts))))

    def test_a_small_memory_gives_the_same_bytes(self):
        large = self.draw(512, 2048)
        self.write({"w": large})
        self.convert("model.safetensors", "turned.safetensors",
                     "target file=1\nw = - <- w[:, 0:1024] ++ w[:, 1024:2048] along 1 in 256 groups\n"
                     "also t = - <- w[1::2, :].T\n", "--memory", "12MiB")
        wanted = np.stack([large[:, :1024].reshape(512, 256, 4), large[:, 1024:].reshape(512, 256, 4)], axis=2)
        self.assert_tensors(files.read(self.path("turned.safetensors"))[0],
                            {"w": wanted.reshape(512, 2048), "t": large[1::2].T})

    def test_casts_in_rules(self):
        """Parts of two types become bf16, one tensor becomes f32, and files of ranks hold the new types."""
        q, k, norm = self.draw(64, 8, dtype="F32"), self.draw(16, 8), self.draw(8, dtype="F16")
        count = np.arange(6, dtype=np.int64)
        self.write({"q": q, "k": k, "norm": norm, "count": count})
        self.convert("model.safetensors", "tp2", "target tp=2\nqk = [tp heads of 8, -] as bf16 <- q + k\nnorm = - as f32\n"
                     "otherwise = -\n", "--to", "ranks")
        bf16 = files.NUMPY["BF16"]
        self.assert_ranks("tp2", 2, lambda rank: {
            "qk": np.concatenate([even(q, rank, 2).astype(bf16), even(k, rank, 2)]), "norm": norm.astype(np.float32),
            "count": count})
        said = self.refused("convert", "model.safetensors", "wrong", "--rules",
                            self.text("wrong", "target file=1\nnorm = -\notherwise = - as bf16\n"))
        self.assertIn("line 3 of the rules: 'count' is i64, which cannot be cast to bf16", said)

    def test_casts_on_the_command_line_come_first(self):
        w = self.draw(8, 8, dtype="F32")
        self.write({"w": w, "v": w})
        self.convert("model.safetensors", "out.safetensors", "target file=1\n* = - as bf16\n", "--cast", "w=f16")
        self.assert_tensors(files.read(self.path("out.safetensors"))[0],
                            {"w": w.astype(np.float16), "v": w.astype(files.NUMPY["BF16"])})

    def test_shapes(self):
        """A matrix of experts side by side, and a view whose borders the files cut."""
        side, rows = self.draw(6, 40), self.draw(12, 10)
        self.write({"side": side, "rows": rows})
        experts = side.reshape(4, 6, 10)
        self.convert("model.safetensors", "out.safetensors", "target file=1\n"
                     "e.{e:4}.gate = - <- side shape(4,6,10)[{e}, :, 0:4].T\ne.{e:4}.up = - <- side shape(4,6,10)[{e}, :, 4:10]\n"
                     "rows = - <- rows shape(8,-1)[1::2, 3:12]\n")
        wanted = {f"e.{e}.gate": experts[e, :, :4].T for e in range(4)} | {f"e.{e}.up": experts[e, :, 4:] for e in range(4)}
        self.assert_tensors(files.read(self.path("out.safetensors"))[0], wanted | {"rows": rows.reshape(8, 15)[1::2, 3:12]})

    def test_shapes_of_tensors_that_files_cut(self):
        """Files may cut a tensor anywhere, also between the rows of a shape."""
        rows = self.draw(12, 10)
        self.text("w.list", "w bf16[12,10]\n")
        self.write({"w": rows})
        for number, cut in enumerate(("[tp, -]", "[-, tp]", "[tp/1, -]", "[-, tp[1,2,4,3]]")):
            self.convert("model.safetensors", f"ranks{number}", f"target tp=4\nw = {cut}\n", "--to", "ranks")
            self.convert(f"ranks{number}", f"out{number}.safetensors", f"source tp=4\nw = {cut}\ntarget file=1\n"
                         "w = - <- w shape(-1)[1::2]\nalso x = - <- w shape(6,2,10)[:, 1, :].T\n", "--list", "w.list")
            self.assert_tensors(files.read(self.path(f"out{number}.safetensors"))[0],
                                {"w": rows.reshape(-1)[1::2], "x": rows[1::2].T})

    def test_padding_and_back(self):
        embed = self.draw(1000, 16)
        self.write({"embed": embed})
        self.convert("model.safetensors", "tp24", "target tp=24\nembed = [tp pad 0 to multiple of tp*2, -]\n", "--to", "ranks")
        self.assert_ranks("tp24", 24, lambda rank: {"embed": even(padded(embed, 1008), rank, 24)})
        self.convert("tp24", "back.safetensors", "source tp=24\nembed = [tp, -]\ntarget file=1\n"
                     "embed = - <- embed[0:1000, :]\n")
        self.assert_tensors(files.read(self.path("back.safetensors"))[0], {"embed": embed})

    def test_megatron_there_to_vllm_and_back(self):
        """Hugging Face to Megatron on 4 ranks; from there to vLLM on 2 and 8 ranks, and back."""
        queries, keys, hidden, inner, words = 16, 4, 32, 48, 1000
        rows = {"q": queries * 128, "k": keys * 128, "v": keys * 128}
        tensors = {"model.embed_tokens.weight": self.draw(words, hidden), "lm_head.weight": self.draw(words, hidden),
                   "model.norm.weight": self.draw(hidden)}
        for n in range(2):
            at = f"model.layers.{n}."
            for part, count in rows.items():
                tensors[f"{at}self_attn.{part}_proj.weight"] = self.draw(count, hidden)
            for name, shape in (("self_attn.o_proj", (hidden, rows["q"])), ("mlp.gate_proj", (inner, hidden)),
                                ("mlp.up_proj", (inner, hidden)), ("mlp.down_proj", (hidden, inner)),
                                ("input_layernorm", (hidden,)), ("post_attention_layernorm", (hidden,))):
                tensors[f"{at}{name}.weight"] = self.draw(*shape)
        self.write(tensors)
        rules = (MODELS / "llama_to_megatron.rules").read_text(encoding="utf-8")
        rules = rules.replace("target tp=8", "target tp=4").replace("in 8 groups", f"in {keys} groups")
        self.convert("model.safetensors", "megatron", rules, "--to", "ranks")
        names = {"embedding.word_embeddings.weight": "model.embed_tokens.weight", "output_layer.weight": "lm_head.weight",
                 "decoder.final_layernorm.weight": "model.norm.weight"}

        def megatron(rank):
            found = {name: even(padded(tensors[names[name]], 1024), rank, 4) for name in list(names)[:2]}
            found["decoder.final_layernorm.weight"] = tensors["model.norm.weight"]
            for n in range(2):
                at, own = f"decoder.layers.{n}.", lambda name, n=n: tensors[f"model.layers.{n}.{name}.weight"]
                qkv = in_groups([own(f"self_attn.{part}_proj") for part in "qkv"], keys)
                found[f"{at}self_attention.linear_qkv.weight"] = even(qkv, rank, 4)
                found[f"{at}self_attention.linear_proj.weight"] = even(own("self_attn.o_proj"), rank, 4, 1)
                found[f"{at}mlp.linear_fc1.weight"] = np.concatenate(
                    [even(own(f"mlp.{part}_proj"), rank, 4) for part in ("gate", "up")])
                found[f"{at}mlp.linear_fc2.weight"] = even(own("mlp.down_proj"), rank, 4, 1)
                found[f"{at}self_attention.linear_qkv.layer_norm_weight"] = own("input_layernorm")
                found[f"{at}mlp.linear_fc1.layer_norm_weight"] = own("post_attention_layernorm")
            return found
        self.assert_ranks("megatron", 4, megatron)

        source = ("source tp=4\nembedding.word_embeddings.weight = [tp, -]\noutput_layer.weight = [tp, -]\n"
                  "*linear_qkv.weight = [tp heads of 768, -]\n*linear_proj.weight = [-, tp]\n"
                  f"*linear_fc1.weight = [tp{{{inner},{inner}}}, -]\n*linear_fc2.weight = [-, tp]\n*norm*weight = -\n")
        fused = "decoder.layers.{n}.self_attention.linear_qkv.weight"
        q, k, v = (f"{fused}[{cut} of 768, :]" for cut in ("0:512", "512:640", "640:768"))
        gate, up = (f"decoder.layers.{{n}}.mlp.linear_fc1.weight[{cut}, :]" for cut in (f"0:{inner}", f"{inner}:{2 * inner}"))
        listed = (f"embedding.word_embeddings.weight bf16[1024,{hidden}]\noutput_layer.weight bf16[1024,{hidden}]\n"
                  f"decoder.final_layernorm.weight bf16[{hidden}]\n")
        for n in range(2):
            at = f"decoder.layers.{n}."
            listed += (f"{at}self_attention.linear_qkv.weight bf16[{sum(rows.values())},{hidden}]\n"
                       f"{at}self_attention.linear_proj.weight bf16[{hidden},{rows['q']}]\n"
                       f"{at}mlp.linear_fc1.weight bf16[{2 * inner},{hidden}]\n"
                       f"{at}mlp.linear_fc2.weight bf16[{hidden},{inner}]\n"
                       f"{at}self_attention.linear_qkv.layer_norm_weight bf16[{hidden}]\n"
                       f"{at}mlp.linear_fc1.layer_norm_weight bf16[{hidden}]\n")
        self.text("megatron.list", listed)
        common = (f"model.embed_tokens.weight = ENDS <- embedding.word_embeddings.weight[0:{words}, :]\n"
                  f"lm_head.weight = ENDS <- output_layer.weight[0:{words}, :]\n"
                  "model.norm.weight = - <- decoder.final_layernorm.weight\n"
                  "model.layers.{n}.input_layernorm.weight = - <- decoder.layers.{n}.self_attention.linear_qkv.layer_norm_weight\n"
                  "model.layers.{n}.post_attention_layernorm.weight = - <- decoder.layers.{n}.mlp.linear_fc1.layer_norm_weight\n")
        for ranks in (2, 8):
            self.convert("megatron", f"vllm{ranks}", source + f"target tp={ranks}\n" + common.replace("ENDS", "[tp, -]") +
                         f"model.layers.{{n}}.self_attn.qkv_proj.weight = [tp heads of 128, -] <- {q} + {k} + {v}\n"
                         "model.layers.{n}.self_attn.o_proj.weight = [-, tp] <- decoder.layers.{n}.self_attention.linear_proj.weight\n"
                         f"model.layers.{{n}}.mlp.gate_up_proj.weight = [tp, -] <- {gate} + {up}\n"
                         "model.layers.{n}.mlp.down_proj.weight = [-, tp] <- decoder.layers.{n}.mlp.linear_fc2.weight\n",
                         "--to", "ranks", "--list", "megatron.list")

            def vllm(rank, ranks=ranks):
                found = {name: array for name, array in tensors.items() if "norm" in name}
                for name in ("model.embed_tokens.weight", "lm_head.weight"):
                    found[name] = even(tensors[name], rank, ranks)
                for n in range(2):
                    at = f"model.layers.{n}."
                    found[f"{at}self_attn.qkv_proj.weight"] = np.concatenate(
                        [heads(tensors[f"{at}self_attn.{part}_proj.weight"], 128, rank, ranks) for part in "qkv"])
                    found[f"{at}self_attn.o_proj.weight"] = even(tensors[f"{at}self_attn.o_proj.weight"], rank, ranks, 1)
                    found[f"{at}mlp.gate_up_proj.weight"] = np.concatenate(
                        [even(tensors[f"{at}mlp.{part}_proj.weight"], rank, ranks) for part in ("gate", "up")])
                    found[f"{at}mlp.down_proj.weight"] = even(tensors[f"{at}mlp.down_proj.weight"], rank, ranks, 1)
                return found
            self.assert_ranks(f"vllm{ranks}", ranks, vllm)
        back = source + "target file=1\n" + common.replace("ENDS", "-")
        for name, part in (("self_attn.q_proj", q), ("self_attn.k_proj", k), ("self_attn.v_proj", v),
                           ("self_attn.o_proj", "decoder.layers.{n}.self_attention.linear_proj.weight"),
                           ("mlp.gate_proj", gate), ("mlp.up_proj", up),
                           ("mlp.down_proj", "decoder.layers.{n}.mlp.linear_fc2.weight")):
            back += f"model.layers.{{n}}.{name}.weight = - <- {part}\n"
        self.convert("megatron", "back.safetensors", back, "--list", "megatron.list")
        self.assert_tensors(files.read(self.path("back.safetensors"))[0], tensors)


if __name__ == "__main__":
    suite.main()
