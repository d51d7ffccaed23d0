"""The way back by the rules in docs/models: tensors of ranks, with the names of vLLM or Megatron, become tensors with the
names of Hugging Face, as files and in memory. Every element is compared with the tensors that numpy cut."""

import re

import suite
from suite import np

import checkpoints as files
from checkpoints import NAMES, RESHARD, same
from models import (MODELS, DeepSeek, ExpertParallelQwenMoe, GptOss, GptOssMxfp4, Llama, Mamba2, MegatronDeepSeek,
                    MegatronGptOss, MegatronLlama, MegatronMamba2, MegatronQwenMoe, QwenMoe)

DEEPSEEK_BACK = {
    "{e:256}": "{e:8}", "[0:1536, :]": "[0:256, :]", "[1536:2112, :]": "[256:448, :]", "[0:12, :]": "[0:2, :]",
    "[12:17, :]": "[2:4, :]", "{18432,18432}": "{2048,2048}", "[0:18432, :]": "[0:2048, :]",
    "[18432:36864, :]": "[2048:4096, :]", "[0:144, :]": "[0:16, :]", "[144:288, :]": "[16:32, :]",
    "{2048,2048}": "{1024,1024}", "[0:2048, :]": "[0:1024, :]", "[2048:4096, :]": "[1024:2048, :]",
    "[0:16, :]": "[0:8, :]", "[16:32, :]": "[8:16, :]", "[{e}, 0:2048, :]": "[{e}, 0:128, :]",
    "[{e}, 2048:4096, :]": "[{e}, 128:256, :]", "[{e}, 0:16, :]": "[{e}, 0:1, :]", "[{e}, 16:32, :]": "[{e}, 1:2, :]"}
MEGATRON_DEEPSEEK_BACK = {
    "{e:256}": "{e:8}", "129280": "1000", "{18432,18432}": "{2048,2048}", "[0:18432, :]": "[0:2048, :]",
    "[18432:36864, :]": "[2048:4096, :]", "{2048,2048}": "{1024,1024}", "[:2048, :]": "[:1024, :]", "[2048:, :]": "[1024:, :]",
    "[0:2048, :]": "[0:128, :]", "[2048:4096, :]": "[128:256, :]"}
# 4 ranks have 4 copies of B and C.
MAMBA2_BACK = {
    "{5120,5120,1024,1024,80}": "{5120,5120,512,512,80}", "[11264:11392, :]": "[10752:10880, :]",
    "[12288:12368, :]": "[11264:11344, :]", "{5120,1024,1024}": "{5120,512,512}", "[6144:6272, :, :]": "[5632:5760, :, :]",
    "[6144:6272]": "[5632:5760]"}


class Way:
    """The rules of both directions. `edits` are for numbers that differ from the published model's. With ep, the mesh has an
    axis of two for experts."""

    def __init__(self, model, there, back, there_edits=None, back_edits=None, ep=1):
        self.model, self.there, self.back, self.ep = model, there, back, ep
        self.there_edits, self.back_edits = there_edits or {}, back_edits or {}

    def mesh(self, ranks):
        return f"tp={ranks}" if self.ep == 1 else f"tp={ranks // self.ep},ep={self.ep}"


# The extents that the rules name are the published ones. All others are small.
WAYS = {
    "llama": lambda rng: Way(Llama(rng, hidden=8, queries=32, keys=8, inner=14336).make(), "llama_to_vllm", "vllm_to_llama"),
    "megatron": lambda rng: Way(MegatronLlama(rng, hidden=8, queries=32, keys=8, inner=14336).make(), "llama_to_megatron",
                                "megatron_to_llama", {}, {"128256": "1000"}),
    "qwen": lambda rng: Way(QwenMoe(rng, hidden=8, queries=32, keys=4, inner=768, experts=8).make(), "qwen_moe_to_vllm",
                            "vllm_to_qwen_moe", {"{e:128}": "{e:8}"}, {"{e:128}": "{e:8}"}),
    "megatron_qwen": lambda rng: Way(
        MegatronQwenMoe(rng, hidden=8, queries=64, keys=8, inner=768, experts=8).make(), "qwen_moe_to_megatron",
        "megatron_to_qwen_moe", {"in 4 groups": "in 8 groups", "{e:128}": "{e:8}"}, {"151936": "1000"}),
    "expert_parallel_qwen": lambda rng: Way(
        ExpertParallelQwenMoe(rng, hidden=8, queries=64, keys=8, inner=768, experts=8).make(), "qwen_moe_to_megatron",
        "megatron_to_qwen_moe",
        {"in 4 groups": "in 8 groups", "{e:128} = [tp, -]": "{e:8} = [{e}@ep, tp, -]",
         "{e:128} = [-, tp]": "{e:8} = [{e}@ep, -, tp]", "{e:128}": "{e:8}"},
        {"151936": "1000", "{e} = [tp{768,768}, -]": "{e:8} = [{e}@ep, tp{768,768}, -]",
         "{e} = [-, tp]": "{e:8} = [{e}@ep, -, tp]"}, ep=2),
    "megatron_deepseek": lambda rng: Way(
        MegatronDeepSeek(rng).make(), "deepseek_v3_to_megatron", "megatron_to_deepseek_v3",
        {"{e:256}": "{e:8}", "{n:3}": "{n:1}", "{n:3:61}": "{n:1:2}"}, MEGATRON_DEEPSEEK_BACK),
    "megatron_gpt_oss": lambda rng: Way(
        MegatronGptOss(rng, hidden=8, inner=2880, queries=64, keys=8).make(), "gpt_oss_to_megatron", "megatron_to_gpt_oss",
        {"{e:32}": "{e:4}"}, {"{e:32}": "{e:4}", "201088": "1000"}),
    "megatron_mamba2": lambda rng: Way(MegatronMamba2(rng).make(), "mamba2_to_megatron", "megatron_to_mamba2", {},
                                       {"32768": "1000"}),
    "deepseek": lambda rng: Way(DeepSeek(rng).make(), "deepseek_v3_to_vllm", "vllm_to_deepseek_v3", {"{e:256}": "{e:8}"},
                                DEEPSEEK_BACK),
    "gpt_oss": lambda rng: Way(GptOss(rng, queries=64, keys=8).make(), "gpt_oss_to_vllm", "vllm_to_gpt_oss"),
    "mxfp4": lambda rng: Way(GptOssMxfp4(rng, queries=64, keys=8).make(), "gpt_oss_mxfp4_to_vllm", "vllm_to_gpt_oss_mxfp4"),
    "mamba2": lambda rng: Way(Mamba2(rng).make(), "mamba2_to_ranks", "ranks_to_mamba2", {}, MAMBA2_BACK)}


def edited(name, edits):
    text = (MODELS / f"{name}.rules").read_text(encoding="utf-8")
    for old in edits:
        assert old in text, (name, old)
    pattern = "|".join(re.escape(old) for old in sorted(edits, key=len, reverse=True))
    return re.sub(pattern, lambda found: edits[found.group()], text) if edits else text


def on_mesh(text, word, mesh):
    text, count = re.subn(rf"^{word} .*$", f"{word} {mesh}", text, flags=re.MULTILINE)
    assert count == 1, word
    return text


def listed(shapes, tensors):
    return "".join(f"{name} {RESHARD[NAMES[tensors[name].dtype]]}[{','.join(map(str, shape))}]\n"
                   for name, shape in shapes.items())


def whole_list(model, ranks, ep):
    """The list of the whole tensors. A dimension is cut if half as many ranks hold more of it. One rank alone holds all of a
    tensor. Ranks that are `ep` apart hold parts of one expert."""
    tiles = [model.of_rank(rank, ranks) for rank in range(ranks)]
    fewer = [model.of_rank(rank, ranks // 2) for rank in range(ep)]
    tensors, shapes = {}, {}
    for rank, own in enumerate(tiles):
        for name in set(own) - set(tensors):
            tensors[name] = own[name]
            held = [tile[name].shape for tile in tiles[rank::ep] if name in tile]
            shapes[name] = [sum(shape[k] for shape in held) if len(held) > 1 and fewer[rank][name].shape[k] != extent else extent
                            for k, extent in enumerate(own[name].shape)]
    return listed(shapes, tensors)


def carry(folder, ranks, sources, targets):
    """Carries out the rows of all senders. sources[rank][name] and targets[rank][name] are arrays."""
    with open(f"{folder}/arrays.tsv", encoding="utf-8") as file:
        ends = [line.rstrip("\n").split("\t") for line in file][1:]
    memory = lambda tiles: [{name: array.reshape(-1).view(np.uint8) for name, array in own.items()} for own in tiles]
    read, written = memory(sources), memory(targets)
    for rank in range(ranks):
        for array, peer, source_at, target_at, size, runs, source_stride, target_stride in np.load(
                f"{folder}/rank{rank}.rows.npy").tolist():
            source, target = ends[array][:2]
            from_, to = read[rank][source][source_at:], written[peer][target][target_at:]
            shape = (runs, size)
            assert (runs - 1) * source_stride + size <= from_.size and (runs - 1) * target_stride + size <= to.size
            np.lib.stride_tricks.as_strided(to, shape, (target_stride, 1))[:] = np.lib.stride_tricks.as_strided(
                from_, shape, (source_stride, 1))


class Back(suite.Case):
    def assert_tensors(self, found, wanted):
        self.assertEqual(set(found), set(wanted))
        for name, array in wanted.items():
            self.assertTrue(same(found[name], np.ascontiguousarray(array)), name)

    def there_and_back(self, way, ranks=4):
        model = way.model
        files.write(self.path("model.safetensors"), model.tensors)
        self.text("there.rules", on_mesh(edited(way.there, way.there_edits), "target", way.mesh(ranks)))
        self.runs("convert", "model.safetensors", "ranks", "--to", "ranks", "--rules", "there.rules")
        self.text("back.rules", on_mesh(edited(way.back, way.back_edits), "source", way.mesh(ranks)))
        self.text("ranks.list", whole_list(model, ranks, way.ep))
        self.runs("convert", "ranks", "back.safetensors", "--rules", "back.rules", "--list", "ranks.list")
        self.assert_tensors(files.read(self.path("back.safetensors"))[0], model.tensors)
        self.back_in_memory(way, ranks)
        self.there_in_memory(way, ranks)

    def back_in_memory(self, way, ranks):
        """From the tiles of the ranks to 8 and to 2 ranks, which have the tensors whole."""
        model = way.model
        sources = [model.of_rank(rank, ranks) for rank in range(ranks)]
        sources = [{name: np.ascontiguousarray(array) for name, array in own.items()} for own in sources]
        for targets in (8, 2):
            rules = on_mesh(edited(way.back, way.back_edits), "source", way.mesh(ranks))
            self.text("rows.rules", on_mesh(rules, "target", f"file={targets}"))
            self.runs("plan", "--list", "ranks.list", "--rules", "rows.rules", "--rows", "rows")
            found = [{name: np.zeros_like(array) for name, array in model.tensors.items()} for _ in range(targets)]
            carry(self.path("rows"), max(ranks, targets), sources + [{}] * targets, found)
            for own in found:
                self.assert_tensors(own, model.tensors)

    def there_in_memory(self, way, ranks):
        """From whole tensors that are cut over the ranks in their first dimension, to 8 and to 2 ranks."""
        model = way.model
        is_cut = {name: array.ndim > 1 and array.shape[0] % ranks == 0 for name, array in model.tensors.items()}
        lines = "".join(f"{name} = {'[fsdp' + ', -' * (array.ndim - 1) + ']' if is_cut[name] else '-'}\n"
                        for name, array in model.tensors.items())
        sources = [{name: np.split(array, ranks)[rank] if is_cut[name] else array for name, array in model.tensors.items()}
                   for rank in range(ranks)]
        self.text("whole.list", listed({name: array.shape for name, array in model.tensors.items()}, model.tensors))
        for targets in (8, 2):
            rules = on_mesh(edited(way.there, way.there_edits), "target", way.mesh(targets))
            self.text("rows.rules", f"source fsdp={ranks}\n{lines}{rules}")
            self.runs("plan", "--list", "whole.list", "--rules", "rows.rules", "--rows", "rows")
            wanted = [model.of_rank(rank, targets) for rank in range(targets)]
            found = [{name: np.zeros(array.shape, array.dtype) for name, array in own.items()} for own in wanted]
            carry(self.path("rows"), max(ranks, targets), sources + [{}] * targets, found)
            for own, tiles in zip(found, wanted):
                self.assert_tensors(own, tiles)

    def test_rows_of_a_cast(self):
        """4 ranks of a trainer have f32, and 4 other ranks get bf16. The trainer casts its tiles before it sends. On the way
        back the trainer casts what it has received."""
        bf16 = files.NUMPY["BF16"]
        trained = (np.arange(2048, dtype=np.float32) / 7).reshape(64, 32)
        self.text("list", "w f32[64,32]\n")
        self.text("rules", "source fsdp=4\nw = [fsdp, -]\ntarget t=4[4-7]\nw = [-, t] as bf16\n")
        self.runs("plan", "--list", "list", "--rules", "rules", "--rows", "rows")
        sources = [{"w": tile.astype(bf16)} for tile in np.split(trained, 4)] + [{}] * 4
        engine = [{}] * 4 + [{"w": np.zeros((64, 8), bf16)} for _ in range(4)]
        carry(self.path("rows"), 8, sources, engine)
        for rank in range(4):
            self.assertTrue(same(engine[4 + rank]["w"], np.ascontiguousarray(np.split(trained.astype(bf16), 4, 1)[rank])))
            self.assertEqual(engine[4 + rank]["w"].nbytes, 1024)
        self.text("list", "w bf16[64,32]\n")
        self.text("rules", "source t=4[4-7]\nw = [-, t]\ntarget fsdp=4\nw = [fsdp, -] as f32\n")
        self.runs("plan", "--list", "list", "--rules", "rules", "--rows", "rows")
        found = [{"w": np.zeros((16, 32), bf16)} for _ in range(4)] + [{}] * 4
        carry(self.path("rows"), 8, engine, found)
        for rank in range(4):
            self.assertTrue(same(found[rank]["w"].astype(np.float32),
                                 np.split(trained.astype(bf16).astype(np.float32), 4)[rank]))

    def test_heads_that_two_ranks_share_come_back_once(self):
        model = QwenMoe(self.rng, hidden=8, queries=32, keys=4, inner=768, experts=8).make()
        shared = {"{4096,512,512}": "{4096,1024,1024}", "[4096:4608, :]": "[0:128 of 256 in 4096:5120, :]",
                  "[4608:5120, :]": "[0:128 of 256 in 5120:, :]", "{e:128}": "{e:8}"}
        self.there_and_back(Way(model, "qwen_moe_to_vllm", "vllm_to_qwen_moe", {"{e:128}": "{e:8}"}, shared), 8)

    def test_lists_of_the_published_models(self):
        """Each list beside the rules of a way back is of the published model."""
        tensors = {"vllm_to_llama": 291, "megatron_to_llama": 291, "vllm_to_qwen_moe": 18867,
                   "megatron_to_qwen_moe": 18867, "vllm_to_deepseek_v3": 90427,
                   "vllm_to_gpt_oss": 411, "vllm_to_gpt_oss_mxfp4": 459, "ranks_to_mamba2": 578,
                   "megatron_to_deepseek_v3": 45395, "megatron_to_gpt_oss": 411, "megatron_to_mamba2": 579}
        for name in tensors:
            list_name = name.split("_to_")[0] + "_" + name.split("_to_")[1]
            self.runs("plan", "--list", str(MODELS / f"{list_name}.list"), "--rules", str(MODELS / f"{name}.rules"), "--rows",
                      "rows")
            with open(self.path("rows/arrays.tsv"), encoding="utf-8") as file:
                made = {line.split("\t")[1] for line in list(file)[1:]}
            self.assertEqual(len(made), tensors[name], name)


for one in WAYS:
    setattr(Back, f"test_{one}", lambda self, one=one: self.there_and_back(WAYS[one](self.rng)))

if __name__ == "__main__":
    suite.main()
