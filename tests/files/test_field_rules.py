"""Rules that users of public projects asked for, one test for each report. numpy makes the values of every rank."""

import suite
from suite import np

import checkpoints as files
from checkpoints import same


class FieldRules(suite.Case):
    def draw(self, *shape, dtype="BF16"):
        return files.values(self.rng, dtype, shape)

    def moved(self, tensors, rules, *options):
        """The files of the ranks that rules make of tensors."""
        files.write(self.path("model.safetensors"), tensors)
        self.runs("convert", "model.safetensors", "ranks", "--to", "ranks", "--rules", self.text("rules", rules), *options)
        return files.read_ranks(self.path("ranks"))

    def assert_tensors(self, found, wanted):
        self.assertEqual(set(found), set(wanted))
        for name, array in wanted.items():
            self.assertTrue(same(found[name], np.ascontiguousarray(array)), name)

    def assert_back(self, tensors, lines, rules):
        """Files of ranks with these lines for the source, back to tensors."""
        self.text("list", lines)
        self.runs("convert", "ranks", "back.safetensors", "--list", "list", "--rules", self.text("back", rules))
        self.assert_tensors(files.read(self.path("back.safetensors"))[0], tensors)

    def padded(self, array, rows):
        return np.concatenate([array, np.zeros((rows - len(array), *array.shape[1:]), array.dtype)])

    def test_halves_of_an_mlp_that_are_padded(self):
        """An inner size that the ranks do not divide: gate and up are padded by themselves, alone and in a stack of experts."""
        tensors = {f"e.{e}.{part}": self.draw(13, 4) for e in range(3) for part in ("gate", "up")}
        rules = "target tp=4\nw13 = [-, tp pad 0 to multiple of tp*2, -] <- e.{e:3}.gate + e.{e:3}.up\n"
        whole = [[self.padded(tensors[f"e.{e}.{part}"], 16) for part in ("gate", "up")] for e in range(3)]
        for rank, found in enumerate(self.moved(tensors, rules)):
            own = [np.concatenate([np.split(half, 4)[rank] for half in halves]) for halves in whole]
            self.assert_tensors(found, {"w13": np.stack(own)})
        self.assert_back(tensors, "w13 bf16[3,32,4]\n", (
            "source tp=4\nw13 = [-, tp{16,16}, -]\ntarget file=1\ne.{e:3}.gate = - <- w13[{e}, 0:13, :]\n"
            "e.{e:3}.up = - <- w13[{e}, 16:-3, :]\n"))

    def test_scales_of_a_padded_mlp(self):
        """Each half has 3 blocks of 4 rows, padded to 4. Its scales are padded, too."""
        tensors = {"gate": self.draw(12, 8, dtype="F8_E4M3"), "up": self.draw(12, 8, dtype="F8_E4M3"),
                   "gate_scale": self.draw(3, 2, dtype="F32"), "up_scale": self.draw(3, 2, dtype="F32")}
        rules = ("target tp=4\nw13 = [tp pad 0 to multiple of tp*4, -] <- gate + up\n"
                 "w13_scale = blocks 4,4 of w13 <- gate_scale + up_scale\n")
        for rank, found in enumerate(self.moved(tensors, rules)):
            own = lambda end, rows: np.concatenate([np.split(self.padded(tensors[half + end], rows), 4)[rank]
                                                    for half in ("gate", "up")])
            self.assert_tensors(found, {"w13": own("", 16), "w13_scale": own("_scale", 4)})
        self.text("wrong", rules.replace("gate_scale + up", "gate_scale ++ up"))
        self.assertIn("line 3 of the rules: 'w13' pads its parts", self.refused(
            "convert", "model.safetensors", "no", "--to", "ranks", "--rules", "wrong"))

    def test_heads_that_are_padded_and_shared(self):
        """3 query heads become 4 on 4 ranks, and 1 kv head becomes 2, each on two ranks."""
        q, k = self.draw(24, 3), self.draw(8, 3)
        line = "qk = [tp pad 0 to multiple of 16 heads of 8, -] <- q + k\n"
        for rank, found in enumerate(self.moved({"q": q, "k": k}, f"target tp=4\n{line}")):
            own = [np.split(self.padded(q, 32), 4)[rank], np.split(self.padded(k, 16), 2)[rank // 2]]
            self.assert_tensors(found, {"qk": np.concatenate(own)})

    def test_halves_with_cuts_of_their_own(self):
        """Each part is cut as the text says: balanced, by shares, or block-cyclic."""
        tensors = {"gate": self.draw(14, 3), "up": self.draw(14, 3)}
        cuts = {"[balanced]": lambda half, rank: np.array_split(half, 3)[rank],
                "[2,4,8]": lambda half, rank: np.split(half, (2, 6))[rank],
                "/2": lambda half, rank: half[np.arange(14) // 2 % 3 == rank]}
        for number, (cut, part) in enumerate(cuts.items()):
            files.write(self.path("model.safetensors"), tensors)
            rules = self.text("rules", f"target tp=3\nw = [tp{cut}, -] <- gate + up\n")
            self.runs("convert", "model.safetensors", f"cut{number}", "--to", "ranks", "--rules", rules)
            for rank, found in enumerate(files.read_ranks(self.path(f"cut{number}"))):
                self.assert_tensors(found, {"w": np.concatenate([part(half, rank) for half in tensors.values()])})

    def test_layers_that_are_stacked_in_the_second_dimension(self):
        """MaxText's scanned layers: [D, layers, F]."""
        tensors = {f"l.{n}.w": self.draw(8, 6) for n in range(4)}
        for rank, found in enumerate(self.moved(tensors, "target fsdp=2\nw = [fsdp, -, -] <- l.{n:4}.w along 1\n")):
            self.assert_tensors(found, {"w": np.split(np.stack(list(tensors.values()), 1), 2)[rank]})
        self.assert_back(tensors, "w bf16[8,4,6]\n", (
            "source fsdp=2\nw = [fsdp, -, -]\ntarget file=1\nl.{n:4}.w = - <- w[:, {n}, :]\n"))

    def test_heads_in_a_dimension_of_their_own(self):
        """MaxText's [D, heads, 8] to Hugging Face's [heads * 8, D]."""
        w = self.draw(6, 4, 8)
        found = self.moved({"w": w}, "target tp=2\nq = [tp heads of 8, -] <- w shape(6,32).T\n")
        self.assert_tensors(found[1], {"q": w.reshape(6, 32).T[16:]})

    def test_groups_of_states_that_ranks_share(self):
        """vllm#13660: a Mamba2 with 2 groups on 4 ranks. Two ranks share a group of B and C."""
        w = self.draw(2 * 64 + 2 * 32 + 8, 6)
        parts = [f"w[{begin}:{end}, :]" for begin, end in ((0, 64), (64, 128), (128, 160), (160, 192), (192, 200))]
        line = f"w = [tp heads of {{8,8,16,16,1}}, -] <- {' + '.join(parts)}\n"
        for rank, found in enumerate(self.moved({"w": w}, f"target tp=4\n{line}")):
            z, x, b, c, dt = np.split(w, (64, 128, 160, 192))
            rows = [np.split(part, 4)[rank] for part in (z, x)] + [np.split(part, 2)[rank // 2] for part in (b, c)]
            self.assert_tensors(found, {"w": np.concatenate([*rows, np.split(dt, 4)[rank]])})

    def test_projections_of_a_gated_delta_net(self):
        """Megatron-Bridge#2013: a group for each key head (q, k, two of v, two of z) becomes q, k, v, z, b, a, each cut."""
        heads, size = 4, 8
        qkvz, ba = self.draw(heads * 6 * size, 5), self.draw(heads * 4, 5)
        rows = [f"qkvz[{begin * size}:{end * size} of {6 * size}, :]" for begin, end in ((0, 1), (1, 2), (2, 4), (4, 6))]
        rows += ["ba[0:2 of 4, :]", "ba[2:4 of 4, :]"]
        there = f"target tp=2\nin_proj = [tp heads of {{8,8,8,8,1,1}}, -] <- {' + '.join(rows)}\n"
        groups, pairs = qkvz.reshape(heads, 6 * size, 5), ba.reshape(heads, 4, 5)
        cut = [groups[:, :size], groups[:, size:2 * size], groups[:, 2 * size:4 * size], groups[:, 4 * size:],
               pairs[:, :2], pairs[:, 2:]]
        for rank, found in enumerate(self.moved({"qkvz": qkvz, "ba": ba}, there)):
            own = [part[rank * 2:rank * 2 + 2].reshape(-1, 5) for part in cut]
            self.assert_tensors(found, {"in_proj": np.concatenate(own)})
        self.assert_back({"qkvz": qkvz, "ba": ba}, "in_proj bf16[208,5]\n", (
            "source tp=2\nin_proj = [tp{32,32,64,64,8,8}, -]\ntarget file=1\n"
            "qkvz = - <- in_proj[0:32, :] ++ in_proj[32:64, :] ++ in_proj[64:128, :] ++ in_proj[128:192, :] in 4 groups\n"
            "ba = - <- in_proj[192:200, :] ++ in_proj[200:208, :] in 4 groups\n"))

    def test_a_dimension_for_gate_and_up(self):
        """torchtitan#4643: w1 and w3 of [E, F, D] become one tensor of [E, 2, F, D], and come back."""
        tensors = {"w1": self.draw(4, 6, 5), "w3": self.draw(4, 6, 5)}
        found = self.moved(tensors, "target ep=2\nw13 = [ep, -, -, -] <- w1 shape(:,1,6,5) ++ w3 shape(:,1,6,5) along 1\n")
        whole = np.stack([tensors["w1"], tensors["w3"]], 1)
        for rank, own in enumerate(found):
            self.assert_tensors(own, {"w13": np.split(whole, 2)[rank]})
        self.assert_back(tensors, "w13 bf16[4,2,6,5]\n", (
            "source ep=2\nw13 = [ep, -, -, -]\ntarget file=1\nw1 = - <- w13[:, 0, :, :]\nw3 = - <- w13[:, 1, :, :]\n"))

    def test_experts_that_a_balancer_moves_and_doubles(self):
        """EPLB#25: 6 places for 4 experts. Experts 2 and 0 are there twice."""
        w, places = self.draw(4, 3, 5), (2, 0, 3, 2, 1, 0)
        parts = " ++ ".join(f"w[{e}:{e + 1}, :, :]" for e in places)
        for rank, found in enumerate(self.moved({"w": w}, f"target ep=3\nalso placed = [ep, -, -] <- {parts}\n")):
            self.assert_tensors(found, {"placed": w[list(places[2 * rank:2 * rank + 2])]})

    def test_a_tied_head_on_the_last_stage(self):
        """Megatron-LM#5737: the embedding is on the first stage, and its copy is the head on the last one."""
        tensors = {"embed": self.draw(12, 4), **{f"layers.{n}.w": self.draw(2, 2) for n in range(5)}}
        found = self.moved(tensors, (
            "target pp=2\nembed = [first@pp, -, -]\nalso head = [last@pp, -, -] <- embed\n"
            "layers.{n:2}.* = [first@pp, -, -]\nlayers.{n:2:5}.* = [last@pp, -, -]\n"))
        self.assert_tensors(found[0], {"embed": tensors["embed"], **{f"layers.{n}.w": tensors[f"layers.{n}.w"] for n in (0, 1)}})
        self.assert_tensors(found[1], {"head": tensors["embed"], **{f"layers.{n}.w": tensors[f"layers.{n}.w"] for n in (2, 3, 4)}})

    def test_halves_of_swiglu_that_8_ranks_saved(self):
        """ROCm/Megatron-LM#63: 8 ranks of FSDP saved their rows of gate and of up. 2 ranks read them."""
        gate, up = self.draw(32, 3), self.draw(32, 3)
        tensors = {"gate": gate, "up": up}
        self.moved(tensors, "target fsdp=8\nfc1 = [fsdp, -] <- gate + up\n")
        self.runs("convert", "ranks", "again", "--to", "ranks", "--list", self.text("list", "fc1 bf16[64,3]\n"), "--rules",
                  self.text("again.rules", "source fsdp=8\nfc1 = [fsdp{32,32}, -]\ntarget fsdp=2\nfc1 = [fsdp{32,32}, -]\n"))
        for rank, found in enumerate(files.read_ranks(self.path("again"))):
            self.assert_tensors(found, {"fc1": np.concatenate([np.split(half, 2)[rank] for half in (gate, up)])})

    def test_scales_of_32_values(self):
        """vllm-omni#5761: a scale for each 32 values of a row. Two ranks that share 32 values both have the scale."""
        tensors = {"w": self.draw(4, 192, dtype="F8_E4M3"), "w_scale": self.draw(4, 6, dtype="U8")}
        rules = "target tp=2\nw = [-, tp]\nw_scale = blocks 1,32 of w\n"
        for rank, found in enumerate(self.moved(tensors, rules)):
            self.assert_tensors(found, {name: np.split(array, 2, 1)[rank] for name, array in tensors.items()})
        self.runs("convert", "ranks", "shared", "--to", "ranks", "--list", self.text("list", "w f8_e4m3fn[4,192]\nw_scale u8[4,6]\n"), "--rules",
                  self.text("shared.rules", rules.replace("target", "source") + rules.replace("tp=2", "tp=4")))
        for rank, found in enumerate(files.read_ranks(self.path("shared"))):
            scales = tensors["w_scale"][:, rank * 48 // 32:-(-(rank + 1) * 48 // 32)]
            self.assert_tensors(found, {"w": np.split(tensors["w"], 4, 1)[rank], "w_scale": scales})
        self.runs("convert", "shared", "back.safetensors", "--list", "list", "--rules", self.text(
            "back", "source tp=4\nw = [-, tp]\nw_scale = blocks 1,32 of w\ntarget file=1\notherwise = -\n"))
        self.assert_tensors(files.read(self.path("back.safetensors"))[0], tensors)

    def test_weights_that_a_convolution_layer_stores_transposed(self):
        """torchtune#2820: GPT-2 stores [in, out], and q, k and v side by side."""
        c_attn = self.draw(6, 48)
        parts = " + ".join(f"c_attn[:, {16 * k}:{16 * k + 16}].T" for k in range(3))
        for rank, found in enumerate(self.moved({"c_attn": c_attn}, f"target tp=2\nqkv = [tp heads of 4, -] <- {parts}\n")):
            own = [np.split(c_attn[:, 16 * k:16 * k + 16].T, 2)[rank] for k in range(3)]
            self.assert_tensors(found, {"qkv": np.concatenate(own)})

    def test_rotary_pairs_to_halves(self):
        """Llama as Meta publishes it has pairs of rotary rows side by side; Hugging Face has two halves of each head."""
        wq, heads, size = self.draw(4 * 16, 5), 4, 16
        found = self.moved({"wq": wq}, f"target tp=2\nq = [tp heads of {size}, -] <- wq[0::2, :] ++ wq[1::2, :] in {heads} groups\n")
        halves = wq.reshape(heads, size // 2, 2, 5).transpose(0, 2, 1, 3).reshape(-1, 5)
        for rank, own in enumerate(found):
            self.assert_tensors(own, {"q": np.split(halves, 2)[rank]})
        self.assert_back({"wq": wq}, "q bf16[64,5]\n", (
            f"source tp=2\nq = [tp, -]\ntarget file=1\nwq = - <- q[0:8 of 16, :] ++ q[8:16 of 16, :] in {heads * size // 2} groups\n"))

    def test_integers_and_booleans_survive_a_cast(self):
        """VeOmni#935: a cast to bf16 leaves counters and masks as they are."""
        tensors = {"w": self.draw(4, 6, dtype="F32"), "steps": self.draw(4, dtype="I64"), "mask": self.draw(4, dtype="BOOL")}
        found = self.moved(tensors, "target fsdp=2\nw = [fsdp, -] as bf16\notherwise = -\n")
        bf16 = files.NUMPY["BF16"]
        for rank, own in enumerate(found):
            self.assert_tensors(own, {**tensors, "w": np.split(tensors["w"].astype(bf16), 2)[rank]})

    def test_one_tensor_in_two_shapes(self):
        """Experts and a shared expert in one matrix: a line sees the experts as a stack, and another line takes the last rows
        as they are."""
        w = self.draw(4 * 6 + 3, 8)
        found = self.moved({"w": w}, (
            "target tp=2\nexperts = [tp, -, -] <- w shape(9,3,8)[0:8, :, :]\nshared = [-, tp] <- w[24:27, :]\n"))
        for rank, own in enumerate(found):
            self.assert_tensors(own, {"experts": w[:24].reshape(8, 3, 8)[4 * rank:4 * rank + 4],
                                      "shared": np.split(w[24:], 2, 1)[rank]})


if __name__ == "__main__":
    suite.main()
