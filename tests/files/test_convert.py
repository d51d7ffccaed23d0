"""`reshard convert` and `inspect`, compared with the `safetensors` package and numpy: a model in all forms, and random
checkpoints. RESHARD_LONG=1 runs a thousand of them; RESHARD_SEED repeats them."""

import json
import os
import resource
import subprocess

import suite
from suite import np

import checkpoints as files
from checkpoints import same



def tensor_rules(ranks):
    lines = [f"target tp={ranks}", "model.embed.weight = [tp, -]"]
    lines += [f"*.{name}_proj.weight = [tp, -]" for name in ("q", "k", "v", "gate", "up")]
    lines += [f"*.{name}_proj.weight = [-, tp]" for name in ("o", "down")]
    return "\n".join([*lines, "otherwise = -"]) + "\n"


def cut_by(name):
    """The dimension that these rules cut."""
    if any(f".{part}_proj" in name for part in ("o", "down")):
        return 1
    return 0 if "_proj" in name or "embed" in name else None


def llama(rng, layers=2, hidden=256, inner=688, words=1000):
    """A small model with the same names and types: bf16 and f32."""
    draw = lambda *shape: files.values(rng, "BF16", shape)
    tensors = {"model.embed.weight": draw(words, hidden)}
    for i in range(layers):
        layer = f"model.layers.{i}."
        for part, shape in (("q", (hidden, hidden)), ("k", (hidden // 4, hidden)), ("v", (hidden // 4, hidden)),
                            ("o", (hidden, hidden)), ("gate", (inner, hidden)), ("up", (inner, hidden)),
                            ("down", (hidden, inner))):
            tensors[f"{layer}{part}_proj.weight"] = draw(*shape)
        tensors[f"{layer}norm.weight"] = files.values(rng, "F32", (hidden,))
    return {**tensors, "model.step": files.values(rng, "I64", ())}


def part(array, dim, rank, ranks):
    if dim is None:
        return array
    return array[(slice(None),) * dim + (slice(*files.shares(array.shape[dim], ranks)[rank]),)]


class Model(suite.Case):
    def setUp(self):
        super().setUp()
        self.tensors = llama(self.rng)

    def assert_same(self, found, wanted):
        self.assertEqual(set(found), set(wanted))
        for name, array in wanted.items():
            self.assertTrue(same(found[name], np.asarray(array)), name)

    def assert_ranks(self, folder, ranks):
        for rank, found in enumerate(files.read_ranks(self.path(folder))):
            self.assert_same(found, {name: part(a, cut_by(name), rank, ranks) for name, a in self.tensors.items()})

    def fsdp(self, folder, ranks):
        files.write_dcp(self.path(folder), self.tensors, ranks,
                        {name: 0 if a.ndim else None for name, a in self.tensors.items()})

    def test_each_form_into_each(self):
        self.fsdp("fsdp", 8)
        self.text("tp4", tensor_rules(4))
        self.text("tp2", tensor_rules(2))
        self.text("both", tensor_rules(4).replace("target", "source") + tensor_rules(2))
        self.text("back", tensor_rules(2).replace("target", "source"))
        self.runs("convert", "fsdp", "one.safetensors", "--verify")
        self.assert_same(files.read(self.path("one.safetensors"))[0], self.tensors)
        self.runs("convert", "one.safetensors", "index", "--file-bytes", "400000")
        self.assertGreater(len(os.listdir(self.path("index"))), 5)
        self.assert_same(files.read_index(self.path("index")), self.tensors)
        self.runs("convert", "index", "ranks4", "--to", "ranks", "--rules", "tp4")
        self.assert_ranks("ranks4", 4)
        self.runs("convert", "ranks4", "ranks2", "--to", "ranks", "--rules", "both")
        self.assert_ranks("ranks2", 2)
        self.runs("convert", "fsdp", "dcp", "--to", "dcp", "--rules", "tp4")
        self.assert_same(files.read_dcp(self.path("dcp")), self.tensors)
        self.runs("convert", "dcp", "again.safetensors")
        self.runs("convert", "ranks2", "last.safetensors", "--rules", "back")
        wanted = self.path("one.safetensors")
        with open(wanted, "rb") as file:
            whole = file.read()
        with open(self.path("again.safetensors"), "rb") as file:
            self.assertEqual(len(file.read()), len(whole))
        self.assert_same(files.read(self.path("again.safetensors"))[0], self.tensors)
        self.assert_same(files.read(self.path("last.safetensors"))[0], self.tensors)
        self.assertEqual([name for name in os.listdir(self.folder) if "partial" in name], [])

    def test_little_memory_is_kept_and_gives_the_same_bytes(self):
        self.tensors = llama(self.rng, layers=3, hidden=1024, inner=2048, words=4000)  # 49 MB
        self.fsdp("fsdp", 16)
        self.text("tp4", tensor_rules(4))
        memory = 24 << 20
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        answer = json.loads(self.runs("convert", "fsdp", "ranks", "--to", "ranks", "--rules", "tp4", "--memory",
                                      str(memory), "--jobs", "2", "--json"))
        peak = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # includes the program's own pages
        self.assertGreaterEqual(answer["batches"], 3)
        self.assertEqual(answer["read_bytes"], answer["source_bytes"])
        if 1024 * before < memory and os.environ.get("RESHARD_SANITIZED") != "1":
            self.assertLess(peak, memory + (16 << 20))
        self.assert_ranks("ranks", 4)

    def test_checksums_in_the_manifest(self):
        self.tensors = {name: a for name, a in self.tensors.items() if a.nbytes < 40000}
        files.write(self.path("in.safetensors"), self.tensors)
        self.runs("convert", "in.safetensors", "out", "--verify")
        said = files.manifest(self.path("out/reshard.json"))
        for name, array in self.tensors.items():
            entry = said["files"]["model-00001-of-00001.safetensors"]["tensors"][name]
            self.assertEqual(entry, {"bytes": array.nbytes, "crc32c": f"{files.crc32c(array.tobytes()):08x}"})

    def test_casts_round_as_others_do(self):
        every = np.arange(65536, dtype=np.uint16)
        numbers = np.concatenate([every.view(files.NUMPY["F16"]).astype(np.float32),
                                  every.view(files.NUMPY["BF16"]).astype(np.float32),
                                  self.rng.integers(0, 2**32, 100000, dtype=np.uint32).view(np.float32)])
        numbers = numbers[~np.isnan(numbers)]
        tensors = {"wide": numbers, "half": every.view(files.NUMPY["F16"]), "brain": every.view(files.NUMPY["BF16"]),
                   "whole": np.arange(5, dtype=np.int32)}
        for name in ("F8_E4M3", "F8_E5M2"):
            tensors[name] = np.arange(256, dtype=np.uint8).view(files.NUMPY[name])
        files.write(self.path("in.safetensors"), tensors)
        for to in ("F32", "BF16", "F16", "F8_E4M3", "F8_E5M2"):
            self.runs("convert", "in.safetensors", f"{to}.safetensors", "--cast", files.RESHARD[to])
            found, _ = files.read(self.path(f"{to}.safetensors"))
            self.assertTrue(same(found.pop("whole"), tensors["whole"]))
            for name, cast in found.items():
                with np.errstate(all="ignore"):
                    wanted = tensors[name].astype(np.float32).astype(files.NUMPY[to])
                self.assertEqual(cast.dtype, wanted.dtype)
                nan = np.isnan(wanted.astype(np.float32))
                self.assertTrue((np.isnan(cast.astype(np.float32)) == nan).all(), (name, to))
                self.assertEqual(cast[~nan].tobytes(), wanted[~nan].tobytes(), (name, to))

    def test_fused_stacked_split_and_dropped(self):
        files.write(self.path("in.safetensors"), self.tensors)
        self.text("rules", "\n".join(
            ["target tp=2", "model.layers.{n}.qkv = [tp, -] <- model.layers.{n}.q_proj.weight + "
             "model.layers.{n}.k_proj.weight + model.layers.{n}.v_proj.weight",
             "gates = [-, tp, -] <- model.layers.{n:2}.gate_proj.weight",
             "left.{n}.{i:2} = - <- model.layers.{n}.down_proj.weight[{i}, 3:17]", "drop model.step",
             "otherwise = -"]))
        self.runs("convert", "in.safetensors", "ranks", "--to", "ranks", "--rules", "rules")
        for rank, found in enumerate(files.read_ranks(self.path("ranks"))):
            for n in range(2):
                layer = f"model.layers.{n}."
                parts = [part(self.tensors[f"{layer}{x}_proj.weight"], 0, rank, 2) for x in "qkv"]
                self.assertTrue(same(found.pop(f"{layer}qkv"), np.concatenate(parts)))
                for i in range(2):
                    wanted = self.tensors[f"{layer}down_proj.weight"][i, 3:17]
                    self.assertTrue(same(found.pop(f"left.{n}.{i}"), np.asarray(order="C", a=wanted)))
            gates = np.stack([self.tensors[f"model.layers.{n}.gate_proj.weight"] for n in range(2)])
            self.assertTrue(same(found.pop("gates"), np.asarray(order="C", a=part(gates, 1, rank, 2))))
            left = {name for name in self.tensors
                    if not any(word in name for word in ("q_proj", "k_proj", "v_proj", "gate", "down", "step"))}
            self.assert_same(found, {name: self.tensors[name] for name in left})

    def test_what_is_refused(self):
        files.write(self.path("in.safetensors"), self.tensors)
        self.text("tp4", tensor_rules(4))
        self.assertIn("must be -", self.refused("convert", "in.safetensors", "out", "--rules", "tp4"))
        self.assertIn("too few", self.refused("convert", "in.safetensors", "out", "--memory", "1MiB", code=1))
        self.assertIn("no line 'target'", self.refused("convert", "in.safetensors", "out", "--to", "ranks"))
        self.assertIn("cannot be cast", self.refused("convert", "in.safetensors", "out", "--cast", "i8"))
        self.assertIn("No such file", self.refused("convert", "nothing", "out"))
        os.mkdir(self.path("there"))
        self.assertIn("is there already", self.refused("convert", "in.safetensors", "there"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.safetensors", "there", "tp4"])
        dry = self.runs("convert", "in.safetensors", "out", "--dry-run")
        self.assertIn("nothing was written", dry)
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.safetensors", "there", "tp4"])

    def test_a_full_disk_leaves_nothing(self):
        files.write(self.path("in.safetensors"), self.tensors)
        done = subprocess.run(["bash", "-c", 'ulimit -f 64; exec "$0" convert in.safetensors out --to index',
                               suite.TOOL], capture_output=True, text=True, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["in.safetensors"])

    def test_inspect_says_what_is_wrong(self):
        self.fsdp("fsdp", 4)
        self.assertNotIn("lacks", self.runs("inspect", "fsdp"))
        os.remove(self.path("fsdp/shard-00002-model-00001-of-00001.safetensors"))
        self.assertIn("lacks 64000 elements", self.runs("inspect", "fsdp"))
        self.assertIn("lacks 64000 of its elements", self.refused("convert", "fsdp", "out"))
        self.assertEqual(os.listdir(self.folder), ["fsdp"])
        self.fsdp("twice", 4)
        os.rename(self.path("twice/shard-00002-model-00001-of-00001.safetensors"),
                  self.path("twice/shard-00009-model-00001-of-00001.safetensors"))
        files.write_dcp(self.path("twice"), {"model.step": self.tensors["model.step"]}, 2,
                        {"model.step": None})
        os.remove(self.path("twice/shard-00002-model-00001-of-00001.safetensors"))
        # Rank 0's file now has only the step; its other tensors are gone.
        self.assertIn("lacks", self.runs("inspect", "twice"))


class Random(suite.Case):
    """Random tensors from a random form to a random form, with random cuts and casts."""

    def draw(self, rng):
        tensors = {}
        for i in range(int(rng.integers(1, 9))):
            shape = tuple(int(n) for n in rng.integers(0 if rng.random() < 0.05 else 1, 40, int(rng.integers(0, 4))))
            name = "".join(rng.choice(list("abc._-0"), 3)) + str(i)
            tensors[name] = files.values(rng, str(rng.choice(list(files.NUMPY))), shape)
        return tensors

    def cut(self, rng, tensors):
        return {name: int(rng.integers(a.ndim)) if a.ndim and rng.random() < 0.7 else None
                for name, a in tensors.items()}

    def rules(self, end, ranks, tensors, dims):
        entry = lambda a, dim: "[" + ", ".join("r" if k == dim else "-" for k in range(a.ndim)) + "]" if a.ndim else "-"
        return f"{end} r={ranks}\n" + "".join(f"{name} = {entry(a, dims[name])}\n" for name, a in tensors.items())

    def write(self, rng, form, tensors):
        """The rules that the source needs."""
        ranks = int(rng.integers(1, 6))
        dims = self.cut(rng, tensors)
        if form == "single":
            files.write(self.path("in.safetensors"), tensors)
            return "in.safetensors", ""
        if form == "index":
            files.write_index(self.path("in"), tensors, int(rng.integers(1, 4)))
        elif form == "dcp":
            files.write_dcp(self.path("in"), tensors, ranks, {n: d if tensors[n].size else None for n, d in dims.items()})
        else:
            os.mkdir(self.path("in"))
            for rank in range(ranks):
                files.write(self.path(f"in/model-rank-{rank}-part-0.safetensors"),
                            {name: np.asarray(order="C", a=part(a, dims[name], rank, ranks)) for name, a in tensors.items()})
            return "in", self.rules("source", ranks, tensors, dims)
        return "in", ""

    def test_random_checkpoints(self):
        total = 1000 if suite.LONG else 40
        worst = (0, 0)
        for number in range(total):
            with self.subTest(repeat=f"RESHARD_SEED={suite.SEED}", number=number):
                rng = np.random.default_rng([suite.SEED, number])
                super().setUp()
                tensors = self.draw(rng)
                source, target = (str(rng.choice(["single", "index", "dcp", "ranks"])) for _ in range(2))
                path, rules = self.write(rng, source, tensors)
                ranks, dims = int(rng.integers(1, 6)), self.cut(rng, tensors)
                if target in ("dcp", "ranks"):
                    rules += self.rules("target", ranks, tensors, dims)
                options = ["--rules", self.text("rules", rules)] if rules else []
                wanted = dict(tensors)
                if rng.random() < 0.4:
                    to = str(rng.choice(["F32", "BF16", "F16"]))
                    options += ["--cast", files.RESHARD[to]]
                    for name, a in tensors.items():
                        if a.dtype.kind not in "iub" and a.dtype != np.float64:
                            with np.errstate(all="ignore"):
                                wanted[name] = a.astype(np.float32).astype(files.NUMPY[to])
                    if any(a.dtype == np.float64 for a in tensors.values()):
                        self.refused("convert", path, "out", "--to", target, *options)
                        continue
                out = "out.safetensors" if target == "single" else "out"
                if rng.random() < 0.5:
                    options += ["--granule", str(int(rng.integers(1, 5000))), "--memory", "16MiB", "--verify"]
                answer = json.loads(self.runs("convert", path, out, "--to", target, "--json", *options))
                worst = max(worst, (answer["granules"] / max(answer["granules_bound"], 1), number))
                if target == "ranks":
                    for rank, found in enumerate(files.read_ranks(self.path(out))):
                        for name, a in wanted.items():
                            own = np.asarray(order="C", a=part(a, dims[name], rank, ranks))
                            if own.size or a.size == 0:
                                self.assertTrue(same(found.pop(name), own if a.size else a), (name, rank))
                        self.assertEqual(found, {})
                    continue
                reader = {"single": lambda path: files.read(path)[0], "index": files.read_index, "dcp": files.read_dcp}
                found = reader[target](self.path(out))
                self.assertEqual(set(found), set(wanted))
                for name, a in wanted.items():
                    self.assertTrue(same(found[name], np.asarray(a)), name)
        print(f"{total} random checkpoints, RESHARD_SEED={suite.SEED}: granules moved / bound at most {worst[0]:.2f}")


if __name__ == "__main__":
    suite.main()
