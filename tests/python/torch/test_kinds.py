"""Moves of every kind of element, on any two meshes, and in the modes that stay torch's, on four gloo ranks."""

import inspect
import itertools
import math
import random
import unittest
from unittest import mock

import ranks
from ranks import DTensor, Replicate, Shard, dist, dtensor, mesh_of, on_mesh, parse, tile, torch
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import distribute_tensor

import reshard
import reshard.torch
from reshard.torch import _move, _packing
from reshard.torch._choice import Settings

RANKS, SIZES, ALWAYS = 4, (2, 2), Settings("always")
PAIRS = 400 if ranks.LONG else 60
MOVES = [(["S(0)", "S(1)"], ["S(1)", "S(0)"]), (["S(0)", "S(0)"], ["S(1)", "S(1)"]), (["S(0)", "R"], ["R", "S(0)"]),
         (["S(0)", "S(0)"], ["R", "S(1)"])]


def spec_of(x, words, mesh=None):
    return _move.DTensorSpec(mesh or x.device_mesh, tuple(map(parse, words)), tensor_meta=x._spec.tensor_meta)


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def elements(rank):
    """Moves copy bits: NaN, signed zeros and infinities too."""
    ways = {}
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
                 "complex128"):
        kind = getattr(torch, name)
        for shape, (source, target) in itertools.product(((8, 12), (7, 5), (3, 1)), MOVES):
            bits = torch.randint(0, 2 if kind is torch.bool else 256, (math.prod(shape) * kind.itemsize,), dtype=torch.uint8,
                                 generator=torch.Generator().manual_seed(1))
            full = bits.view(kind).reshape(shape)
            x = on_mesh(full, SIZES, source)
            spec = spec_of(x, target)
            try:
                moved = _move.moved(x._local_tensor, x._spec, spec, ALWAYS)
            except RuntimeError as error:
                assert "Invalid scalar type" in str(error), error  # gloo does not send this type
                moved = None
            how = "refused" if moved is None else _move.move_of(x._spec, spec, ALWAYS).choice.how
            assert moved is None or same_bits(moved, tile(full, target, SIZES, x.device_mesh.get_coordinate())), (name, shape, source)
            ways[name, how] = ways.get((name, how), 0) + 1
    return ways


def views_of_tiles(rank):
    """Tiles that are no dense memory: transposed, expanded, a part of another tensor, conjugated."""
    at = mesh_of(SIZES).get_coordinate()
    for kind, (source, target) in itertools.product((torch.float32, torch.complex64), MOVES):
        full = torch.randn(8, 12, dtype=kind, generator=torch.Generator().manual_seed(1))
        dense = tile(full, source, SIZES, at).contiguous()
        wide = torch.zeros(dense.shape[0], 2 * dense.shape[1], dtype=kind)
        wide[:, 1::2] = dense
        turned = dense.conj().resolve_conj().conj() if kind.is_complex else torch._neg_view(-dense)
        for local in (dense.t().contiguous().t(), wide[:, 1::2], turned):
            x = dtensor(local, mesh_of(SIZES), source, full.shape)
            moved = _move.moved(local, x._spec, spec_of(x, target), ALWAYS)
            wanted = tile(full, target, SIZES, at)
            assert same_bits(moved.resolve_conj().resolve_neg(), wanted), (kind, source, target, local.stride())
    row = torch.arange(12.0)
    x = dtensor(tile(row.expand(8, 12), ["S(0)", "S(1)"], SIZES, at)[:1].expand(4, 6), mesh_of(SIZES), ["S(0)", "S(1)"], (8, 12))
    moved = _move.moved(x._local_tensor, x._spec, spec_of(x, ["S(1)", "S(0)"]), ALWAYS)
    assert torch.equal(moved, tile(row.expand(8, 12), ["S(1)", "S(0)"], SIZES, at))


MESHES = [((4,), (0, 1, 2, 3)), ((2, 2), (0, 1, 2, 3)), ((2, 2), (3, 1, 0, 2)), ((4, 1), (2, 3, 0, 1)), ((2, 1, 2), (0, 3, 1, 2)),
          ((3,), (0, 1, 3)), ((2,), (0, 1)), ((2,), (3, 2)), ((1, 2), (1, 2)), ((1,), (2,))]


def draw(rng):
    """The numbers of two meshes, a shape, and placements. A third of the sources are sums."""
    ends, dims = rng.sample(range(len(MESHES)), 2), rng.randint(1, 3)
    shape = tuple(rng.randint(1, 9) for _ in range(dims))
    op = rng.choice(["sum", "avg", "max", "min"]) if rng.random() < 0.33 else None
    words = [[rng.choice(["R"] + [f"S({dim})" for dim in range(dims)] * 2 + more) for _ in MESHES[end][0]]
             for end, more in zip(ends, ([f"P({op})"] * 2 if op else [], []))]
    return ends, shape, words


def held(full, words, sizes, mesh):
    at = mesh.get_coordinate()
    return tile(full, words, sizes, at).contiguous() if at is not None else full.new_empty(0)


def two_meshes(rank):
    """Two meshes of many: disjoint, overlapping, in another order, with axes of one rank. Values and gradients."""
    rng = random.Random(ranks.SEED)
    meshes = [DeviceMesh("cpu", torch.tensor(devices).reshape(sizes)) for sizes, devices in MESHES]
    for _ in range(PAIRS):
        case = (one, other), shape, (source, target) = draw(rng)
        sizes, others = MESHES[one][0], MESHES[other][0]
        full = torch.arange(1.0, 1 + math.prod(shape)).remainder_(5).add_(1).reshape(shape)
        scale = math.prod(ranks._sum(size, word[2:-1]) for size, word in zip(sizes, source) if word.startswith("P"))
        x = dtensor(held(full, source, sizes, meshes[one]), meshes[one], source, shape).requires_grad_()
        y = reshard.torch.redistribute(x, [parse(word) for word in target], mesh=meshes[other])
        if meshes[other].get_coordinate() is not None:
            assert torch.allclose(y._local_tensor, held(full * scale, target, others, meshes[other])), case
        y.backward(dtensor(held(full * 3, target, others, meshes[other]), meshes[other], target, shape))
        back = ["R" if word.startswith("P") else word for word in source]  # the gradient of a sum is the same on all its ranks
        if meshes[one].get_coordinate() is not None:
            assert torch.equal(x.grad._local_tensor, held(full * 3, back, sizes, meshes[one])), case
    init_device_mesh("cpu", (2, 2))  # torch names its groups by a count; if ranks counted differently, they would wait for ever
    return reshard.torch.stats()


def products(rank):
    """Sums by product, which is the fifth kind. A product of zeros and ones is the array itself, times the weights."""
    full = torch.arange(96.0).remainder_(2).reshape(8, 12)
    for source, target in ((["P(product)", "S(0)"], ["S(0)", "S(1)"]), (["P(product)", "R"], ["R", "S(0)"]),
                           (["S(0)", "P(product)"], ["R", "S(1)"]), (["P(product)", "S(1)"], ["P(product)", "S(0)"])):
        x = on_mesh(full, SIZES, source)
        want = ranks.wanted(full, source, target, SIZES, x.device_mesh.get_coordinate())
        for policy in ("bytes", "time"):
            with reshard.torch.installed(policy):
                assert torch.allclose(x.redistribute(placements=[parse(word) for word in target])._local_tensor, want), (source, target)


def casts_on_the_way(rank):
    """forward_dtype and backward_dtype of torch, whose specs have the dtype that travels."""
    if "forward_dtype" not in inspect.signature(DTensor.redistribute).parameters:
        return  # an older torch
    to = [Shard(1), Shard(0)]
    full = torch.arange(96.0).reshape(8, 12) / 7
    found = []
    for context in (None, "bytes"):
        with reshard.torch.installed(context) if context else torch.enable_grad():
            x = on_mesh(full, SIZES, ["S(0)", "S(1)"]).requires_grad_()
            y = x.redistribute(placements=to, forward_dtype=torch.bfloat16, backward_dtype=torch.float64)
            y.sum().backward()
            found.append([y._local_tensor.detach(), x.grad._local_tensor])
    assert all(same_bits(a, b) for a, b in zip(*found)), found
    assert found[0][0].dtype == torch.bfloat16


def casts_of_ours(rank):
    """dtype= on one mesh and to another one. Bytes are of the narrower type; sums are rounded once."""
    full, wide, narrow = torch.arange(96.0).reshape(8, 12) / 7, torch.float32, torch.bfloat16
    at, half = mesh_of(SIZES).get_coordinate(), DeviceMesh("cpu", torch.tensor([1, 3]))
    to, received = ["S(1)", "S(0)"], []
    for held_as, dtype in ((wide, narrow), (narrow, wide)):
        for source, scale in ((["S(0)", "S(1)"], 1), (["P(sum)", "S(0)"], 3)):
            x = on_mesh(full.to(held_as), SIZES, source).requires_grad_()
            with reshard.torch.installed("bytes"), ranks.Count() as seen:
                y = reshard.torch.redistribute(x, [parse(word) for word in to], dtype=dtype)
            summands = [(full.to(held_as) * (k + 1)).to(torch.promote_types(held_as, dtype)) for k in range(2)]
            want = (sum(summands) if scale == 3 else full.to(held_as)).to(dtype)
            assert same_bits(y._local_tensor.detach(), tile(want, to, SIZES, at)), (held_as, source)
            received.append(seen.received)
            y.backward(torch.ones_like(y))
            assert x.grad.dtype == held_as and torch.equal(x.grad.full_tensor(), torch.ones(8, 12, dtype=held_as))
        x = on_mesh(full.to(held_as), SIZES, ["S(0)", "S(1)"])
        y = reshard.torch.redistribute(x, [Shard(0)], mesh=half, dtype=dtype)
        assert y.dtype == dtype and (half.get_coordinate() is None or same_bits(
            y._local_tensor, tile(full.to(held_as).to(dtype), ["S(0)"], (2,), half.get_coordinate())))
    assert received[0] == received[2] and received[1] == received[3], received


def halos(rank):
    """Blocks with their cells, and the gradient of all of them: an element has the sum of its copies."""
    for sizes, words, shape, width, periodic in (((2, 2), ["S(0)", "S(1)"], (12, 8), 1, True), ((4,), ["S(0)"], (13, 3), [(1, 2), 0], True),
                                                 ((2, 2), ["S(1)", "S(0)"], (7, 5), [(0, 3), 4], [False, True]),
                                                 ((2, 2), ["S(0)", "S(0)"], (6, 4), 2, False), ((4,), ["S(1)"], (2, 3), 1, False)):
        full = torch.arange(1.0, 1 + math.prod(shape), dtype=torch.float64).reshape(shape)
        x, places = on_mesh(full, sizes, words).requires_grad_(), on_mesh(torch.arange(math.prod(shape)).reshape(shape), sizes, words)
        got = reshard.torch.halo(x, width, periodic)
        held = places._local_tensor
        if held.numel() == 0:
            assert got.numel() == 0, (rank, words)
            index = held.reshape(-1)
        else:
            each = [(one, one) if isinstance(one, int) else one for one in ([width] * 2 if isinstance(width, int) else width)]
            wraps = [periodic] * 2 if isinstance(periodic, bool) else periodic
            first = [int(held[0, 0]) // shape[1], int(held[0, 0]) % shape[1]]
            sides = [torch.arange(begin - before, begin + n + after) for begin, n, (before, after) in zip(first, held.shape, each)]
            inside = torch.ones(*map(len, sides), dtype=torch.bool)
            for dim, (side, wrap) in enumerate(zip(sides, wraps)):
                good = torch.full_like(side, True, dtype=torch.bool) if wrap else (side >= 0) & (side < shape[dim])
                inside &= good[:, None] if dim == 0 else good[None, :]
            index = (sides[0] % shape[0])[:, None] * shape[1] + sides[1] % shape[1]
            assert torch.equal(got, torch.where(inside, full.reshape(-1)[index], 0)), (rank, words, shape)
            index = index[inside]
        counts = torch.bincount(index, minlength=full.numel()).double()  # copies of each element here
        dist.all_reduce(counts)
        first, = torch.autograd.grad((got * got).sum(), x, create_graph=True)
        wanted = tile(2 * full * counts.reshape(shape), words, sizes, x.device_mesh.get_coordinate())
        assert torch.equal(first._local_tensor.detach(), wanted), (rank, words, shape)
        second, = torch.autograd.grad(first.to_local().sum(), x)
        assert torch.equal(second._local_tensor, tile(2 * counts.reshape(shape), words, sizes, x.device_mesh.get_coordinate()))
    for words in (["S(0)", "R"], ["P(sum)", "S(0)"]):
        try:
            reshard.torch.halo(on_mesh(full, SIZES, words))
        except reshard.UnsupportedError as error:
            assert "no halo" in str(error)
        else:
            raise AssertionError("no error")


def masked_sums_stay_torchs(rank):
    """The rows of a vocabulary over ranks: torch's embedding makes a sum of a subclass, and reduces it by itself."""
    mesh = mesh_of((RANKS,))
    table = torch.randn(10, 6, generator=torch.Generator().manual_seed(1))
    words = torch.tensor([[0, 9, 4], [5, 3, 7]])
    weight = dtensor(tile(table, ["S(0)"], (RANKS,), mesh.get_coordinate()).contiguous(), mesh, ["S(0)"], table.shape)
    with reshard.torch.installed("bytes"):
        out = torch.nn.functional.embedding(DTensor.from_local(words, mesh, [Replicate()]), weight)
        assert type(out.placements[0]).__name__ == "_MaskPartial", out.placements
        for to in (Replicate(), Shard(0), Shard(1)):
            assert torch.equal(out.redistribute(placements=[to]).full_tensor(), table[words])
            out = torch.nn.functional.embedding(DTensor.from_local(words, mesh, [Replicate()]), weight)


def symbols_stay_torchs(rank):
    """A program with symbolic sizes."""
    step = torch.compile(lambda x: x.redistribute(placements=[Shard(1), Shard(0)]) * 2, backend="aot_eager", dynamic=True)
    with reshard.torch.installed("bytes"):
        for rows in (8, 12, 16):
            full = torch.arange(12.0 * rows).reshape(rows, 12)
            x = on_mesh(full, SIZES, ["S(0)", "S(1)"])
            assert torch.equal(step(x)._local_tensor, tile(full, ["S(1)", "S(0)"], SIZES, x.device_mesh.get_coordinate()) * 2)


def one_program_for_all_ranks_stays_torchs(rank):
    """A compiler that runs on one rank alone has symbols for ranks."""
    config, full = torch.compiler.config, torch.arange(96.0).reshape(8, 12)
    if not hasattr(config, "compile_on_one_rank"):
        return  # an older torch
    x = on_mesh(full, SIZES, ["S(0)", "S(1)"])
    for is_one in (False, True):
        before = reshard.torch.stats()
        with reshard.torch.installed("bytes"), config.patch(compile_on_one_rank=is_one):
            y = x.redistribute(placements=[Shard(1), Shard(0)])
        assert torch.equal(y._local_tensor, tile(full, ["S(1)", "S(0)"], SIZES, x.device_mesh.get_coordinate()))
        assert (reshard.torch.stats() == before) is is_one, is_one


def ranks_that_one_process_plays_stay_torchs(rank):
    try:
        from torch.distributed._local_tensor import LocalTensorMode
    except ImportError:
        return  # an older torch
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    full = torch.arange(96.0).reshape(8, 12)
    with LocalTensorMode(RANKS), reshard.torch.installed("bytes"):
        mesh = init_device_mesh("cpu", SIZES)
        x = distribute_tensor(full, mesh, [Shard(0), Shard(1)])
        whole = x.redistribute(placements=[Shard(1), Shard(0)]).full_tensor()
        tiles = list(whole._local_tensors.values())
    assert len(tiles) == RANKS and all(torch.equal(one, full) for one in tiles), tiles


class Kinds(unittest.TestCase):
    def test_elements(self):
        ways = ranks.run(RANKS, elements)[0]
        moved = {name for name, how in ways if how != "refused"}
        self.assertTrue({"float32", "float64", "float16", "int64", "int32", "uint8"} <= moved, ways)
        self.assertTrue({"program", "exchange"} <= {how for name, how in ways if name == "float32"}, ways)

    def test_packing_by_rows_and_by_views_is_the_same(self):
        """A rank whose program is compiled packs by views, and its peers may pack by rows."""
        rng, mesh, most = random.Random(ranks.SEED), reshard.Mesh([("d0", 2), ("d1", 3)]), 0
        for _ in range(PAIRS):
            shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 4)))
            words = [[rng.choice(["R"] + [f"S({dim})" for dim in range(len(shape))] * 2) for _ in range(2)] for _ in range(2)]
            ends = [reshard.Layout.from_placements(mesh, "f32", shape, list(map(parse, one))) for one in words]
            schedule, full = reshard.RowSchedule([tuple(ends)]), torch.arange(1.0, 1 + math.prod(shape)).reshape(shape)
            tiles = [[tile(full, one, (2, 3), divmod(device, 3)).contiguous() for device in range(6)] for one in words]
            made = [torch.zeros_like(one) for one in tiles[1]]
            for here, there in itertools.product(range(6), range(6)):
                sends, receives = schedule.nested_rows(here, "send"), schedule.nested_rows(there, "receive")
                sent, got = (_packing.Rows(rows[rows["peer"] == peer], 4) for rows, peer in ((sends, there), (receives, here)))
                most = max(most, len(sends[sends["peer"] == there]))
                by_rows = sent.packed(tiles[0][here])
                with mock.patch.object(_packing, "is_on_host", lambda one: False):
                    by_views, seen = sent.packed(tiles[0][here]), torch.zeros_like(made[there])
                    got.unpack(by_views, seen)
                self.assertTrue(torch.equal(by_rows, by_views), (shape, words, here, there))
                got.unpack(by_rows, made[there])
                self.assertTrue(torch.equal(seen, torch.where(seen != 0, made[there], 0)))
            for device in range(6):
                self.assertTrue(torch.equal(made[device], tiles[1][device]), (shape, words, device))
        self.assertLessEqual(most, 4)  # views for a peer; rows are hundreds

    def test_two_meshes(self):
        ways = ranks.run(RANKS, two_meshes)[0]
        self.assertTrue({"exchange", "reduce, exchange"} <= set(ways), ways)


    def test_ranks_that_one_process_plays(self):
        ranks.run(1, ranks_that_one_process_plays_stay_torchs)


def _test(work):
    return lambda self: ranks.run(RANKS, work) and None


for _work in (views_of_tiles, products, casts_on_the_way, casts_of_ours, halos, masked_sums_stay_torchs, symbols_stay_torchs,
              one_program_for_all_ranks_stays_torchs):
    setattr(Kinds, f"test_{_work.__name__}", _test(_work))


if __name__ == "__main__":
    unittest.main()
