"""install() and redistribute() on four gloo ranks: gradients, compiled programs, other meshes, and every trap that was met."""

import contextlib
import itertools
import os
import tempfile
import unittest

import ranks
from ranks import DTensor, Partial, Replicate, Shard, dist, dtensor, mesh_of, on_mesh, parse, tile, torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import _redistribute

import reshard
import reshard.torch
from reshard.torch import _choice, _everywhere, _move
from reshard.torch._choice import Settings

RANKS = 4
SIZES = (2, 2)
PAIRS = [(["S(0)", "S(1)"], ["S(1)", "S(0)"]), (["P(sum)", "S(0)"], ["S(0)", "S(1)"]), (["S(0)", "S(0)"], ["R", "S(1)"]),
         (["P(avg)", "R"], ["S(1)", "S(0)"]), (["SS(0,2)", "S(0)"], ["R", "S(0)"]), (["R", "S(0)"], ["S(0)", "R"])]


def full_array(shape=(64, 24)):
    return torch.arange(1.0, 1 + shape[0] * shape[1]).reshape(shape)


def by_plans():
    """How many moves of this process were not torch's own."""
    return sum(count for how, count in reshard.torch.stats().items() if not how.startswith("torch"))


def placed(words):
    return [parse(word) for word in words]


def gradients(move, source):
    x = on_mesh(full_array() / 100, SIZES, source).requires_grad_()
    y = move(x)
    first, = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    second, = torch.autograd.grad((first * first).sum(), x)
    return [first.placements, first._local_tensor.detach(), second._local_tensor.detach()]


def same(a, b):
    return all(torch.allclose(u, v) if isinstance(u, torch.Tensor) else u == v for u, v in zip(a, b))


def first_and_second_gradients(rank):
    for source, target in PAIRS:
        to = placed(target)
        theirs = gradients(lambda x: x.redistribute(placements=to), source)
        for policy in ("time", "bytes"):
            with reshard.torch.installed(policy):
                assert same(theirs, gradients(lambda x: x.redistribute(placements=to), source)), (source, target, policy)
                assert same(theirs, gradients(lambda x: reshard.torch.redistribute(x, to), source)), (source, target)


def a_checkpointed_step(rank):
    from torch.utils.checkpoint import checkpoint
    to, back = placed(["S(1)", "S(0)"]), placed(["S(0)", "S(1)"])

    def body(x):
        return torch.tanh(x.redistribute(placements=to) * 2).redistribute(placements=back)

    found = []
    for context in (contextlib.nullcontext(), reshard.torch.installed("bytes")):
        with context:
            x = on_mesh(full_array() / 1000, SIZES, ["S(0)", "S(1)"]).requires_grad_()
            y = checkpoint(body, x, use_reentrant=False)
            y.to_local().sum().backward()
            found.append([y._local_tensor.detach(), x.grad._local_tensor])
    assert same(*found)


def other_meshes(rank):
    grid, line = mesh_of(SIZES), mesh_of((RANKS,))
    cases = [(DeviceMesh("cpu", [0, 1]), DeviceMesh("cpu", [2, 3]), ["S(0)"], ["S(1)"], (13, 7)),
             (line, DeviceMesh("cpu", [3, 2, 1, 0]), ["S(0)"], ["S(0)"], (64, 24)),
             (grid, line, ["S(0)", "S(1)"], ["S(0)"], (64, 24)),
             (line, DeviceMesh("cpu", [0, 2]), ["S(0)"], ["S(1)"], (13, 7)),
             (DeviceMesh("cpu", [1, 2]), grid, ["R"], ["S(1)", "S(0)"], (13, 7))]
    for first, second, source, target, shape in cases:
        full = full_array(shape)

        def held(mesh, words):
            at = mesh.get_coordinate()
            return tile(full, words, tuple(mesh.shape), at).contiguous() if at is not None else torch.empty(0)

        x = dtensor(held(first, source), first, source, shape).requires_grad_()
        y = reshard.torch.redistribute(x, placed(target), mesh=second)
        assert second.get_coordinate() is None or torch.equal(y._local_tensor, held(second, target)), (source, target)
        y.backward(dtensor(y._local_tensor.detach() * 3, second, target, shape))
        assert first.get_coordinate() is None or torch.equal(x.grad._local_tensor, held(first, source) * 3), (source, target)


def an_async_move(rank):
    x = on_mesh(full_array(), SIZES, ["S(0)", "R"])
    y = reshard.torch.redistribute(x, [Replicate(), Replicate()], async_op=True)
    assert torch.equal(y.to_local() + 0, full_array())
    spec = _move.DTensorSpec(x.device_mesh, (Replicate(), Replicate()), tensor_meta=x._spec.tensor_meta)
    waiting = _move.moved(x._local_tensor, x._spec, spec, Settings("always"), async_op=True)
    assert torch.equal(waiting + 0, full_array())
    once = _move.moved(dist._functional_collectives.AsyncCollectiveTensor(x._local_tensor + 0), x._spec, spec, Settings("always"))
    assert torch.equal(once, full_array())  # an input that is still on its way


def compiled_programs(rank):
    def step(x, w):
        return torch.relu(x.redistribute(placements=[Shard(1), Shard(0)]) * 2 + 1) @ w

    w = torch.randn(24, 64, generator=torch.Generator().manual_seed(1))
    found = []
    ways = itertools.product((contextlib.nullcontext, lambda: reshard.torch.installed("bytes", mesh=mesh_of(SIZES))),
                             (None, "aot_eager"))
    for context, backend in ways:
        with context():
            x = on_mesh(full_array(), SIZES, ["S(0)", "S(1)"]).requires_grad_()
            d = dtensor(w.clone(), mesh_of(SIZES), ["R", "R"], (24, 64)).requires_grad_()
            run = step if backend is None else torch.compile(step, backend=backend, fullgraph=True)
            before = by_plans()
            y = run(x, d)
            y.full_tensor().square().sum().backward()
            if context is not contextlib.nullcontext:
                assert by_plans() > before, (backend, reshard.torch.stats())
            found.append([y.full_tensor().detach(), x.grad.full_tensor(), d.grad.full_tensor()])
    for one in found[1:]:
        assert all(torch.allclose(u, v, rtol=1e-4) for u, v in zip(found[0], one))
    explicit = torch.compile(lambda x: reshard.torch.redistribute(x, [Shard(1), Shard(0)]) * 2, backend="aot_eager", fullgraph=True)
    with reshard.torch.installed("bytes"):
        x = on_mesh(full_array(), SIZES, ["S(0)", "S(1)"])
        assert torch.equal(explicit(x)._local_tensor, tile(full_array(), ["S(1)", "S(0)"], SIZES, x.device_mesh.get_coordinate()) * 2)


def a_program_compiled_before_is_compiled_again(rank):
    step = torch.compile(lambda x: x.redistribute(placements=[Shard(1), Shard(0)]), fullgraph=True)
    x = on_mesh(full_array(), SIZES, ["S(0)", "S(1)"])
    want = step(x)._local_tensor
    tags = [torch.compiler.config.cache_key_tag]
    for policy in ("bytes", "time"):
        before = by_plans()
        with reshard.torch.installed(policy):
            assert torch.equal(step(x)._local_tensor, want)
            tags.append(torch.compiler.config.cache_key_tag)
        assert by_plans() > before, "the program of before ran"
    assert len(set(tags)) == 3 and f"rank {rank}" in tags[1], tags
    before = by_plans()
    assert torch.equal(step(x)._local_tensor, want)
    assert by_plans() == before and torch.compiler.config.cache_key_tag == tags[0]


def a_program_from_a_cache(rank, folder):
    """The second process of each rank loads what the first one compiled."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder  # of all ranks together: our key has the rank
    reshard.torch.install("bytes", mesh=mesh_of(SIZES))
    step = torch.compile(lambda x: x.redistribute(placements=[Shard(1), Shard(0)]), fullgraph=True)
    x = on_mesh(full_array(), SIZES, ["S(0)", "S(1)"])
    moved = step(x)._local_tensor
    assert torch.equal(moved, tile(full_array(), ["S(1)", "S(0)"], SIZES, x.device_mesh.get_coordinate()))
    gathered = torch.compile(lambda x: x.redistribute(placements=[Replicate(), Replicate()]), fullgraph=True)(x)
    assert torch.equal(gathered._local_tensor, full_array())


def a_sum_that_stays_keeps_its_summands(rank):
    for op, sizes in itertools.product(("sum", "max", "avg"), ((2, 2),)):
        source, target = [f"P({op})", "S(1)"], [f"P({op})", "S(0)"]
        x = on_mesh(full_array(), sizes, source)
        spec = _move.DTensorSpec(x.device_mesh, tuple(placed(target)), tensor_meta=x._spec.tensor_meta)
        got = _move.moved(x._local_tensor, x._spec, spec, Settings("always"))
        assert torch.equal(got, tile(full_array(), target, sizes, x.device_mesh.get_coordinate())), op


def refusals_are_torchs(rank):
    x = on_mesh(full_array(), SIZES, ["S(0)", "R"])
    to = [Partial("max"), Replicate()]
    errors = []
    for context in (contextlib.nullcontext(), reshard.torch.installed()):
        for move in (lambda: x.redistribute(placements=to), lambda: reshard.torch.redistribute(x, to)):
            try:
                with context:
                    move()
                errors.append("")
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
            context = contextlib.nullcontext() if isinstance(context, contextlib.nullcontext) else reshard.torch.installed()
    assert len(set(errors)) == 1 and errors[0], errors
    for wrong in (lambda: reshard.torch.redistribute(x, [Shard(0)]), lambda: reshard.torch.install("fastest"),
                  lambda: reshard.torch.redistribute(x, [Shard(0)], mesh=mesh_of((RANKS,)), memory=10)):
        try:
            wrong()
        except reshard.Error:
            continue
        raise AssertionError("no error")


def memory_is_a_limit(rank):
    x = on_mesh(full_array(), SIZES, ["S(0)", "S(1)"])
    tile_bytes = x._local_tensor.nbytes
    y = reshard.torch.redistribute(x, [Shard(1), Shard(0)], memory=4 * tile_bytes)
    assert torch.equal(y._local_tensor, tile(full_array(), ["S(1)", "S(0)"], SIZES, x.device_mesh.get_coordinate()))
    try:
        reshard.torch.redistribute(x, [Shard(1), Shard(0)], memory=tile_bytes)
    except reshard.InfeasibleError as error:
        assert "holds at least" in str(error)
    else:
        raise AssertionError("no error")


def calibrated_prices_are_the_same_everywhere(rank):
    prices = reshard.torch.calibrate(mesh_of(SIZES), rounds=1, largest=1 << 14)
    every = [None] * RANKS
    dist.all_gather_object(every, prices.json())
    assert len(set(every)) == 1
    assert reshard.torch.Prices.from_json(prices.json()) == prices
    with reshard.torch.installed(prices=prices):
        x = on_mesh(full_array(), SIZES, ["S(0)", "S(1)"])
        assert torch.equal(x.redistribute(placements=[Shard(1), Shard(0)]).full_tensor(), full_array())


def two_libraries_chain(rank):
    before = _redistribute.redistribute_local_tensor
    calls = []

    def other(*args, **more):
        calls.append(1)
        return before(*args, **more)

    held = _everywhere.replace(before, other)
    x = on_mesh(full_array(), SIZES, ["S(0)", "S(1)"])
    with reshard.torch.installed("bytes"):
        x.redistribute(placements=[Shard(0), Replicate()])  # torch's own is as good, so the other library moves it
        assert calls
        kept = _redistribute.redistribute_local_tensor
    assert _redistribute.redistribute_local_tensor is other
    spec = _move.DTensorSpec(x.device_mesh, (Shard(1), Shard(0)), tensor_meta=x._spec.tensor_meta)
    assert torch.equal(kept(x._local_tensor, x._spec, spec), tile(full_array(), ["S(1)", "S(0)"], SIZES, x.device_mesh.get_coordinate()))
    _everywhere.put_back(held, other)
    assert _redistribute.redistribute_local_tensor is before


def a_mesh_in_another_order(rank):
    mesh = DeviceMesh("cpu", torch.tensor([[3, 1], [0, 2]]))
    source, target = ["S(0)", "S(0)"], ["S(1)", "S(0)"]
    at = mesh.get_coordinate()
    for to in (target, ["R", "R"], ["R", "S(0)"], ["S(1)", "S(1)"]):
        x = dtensor(tile(full_array(), source, SIZES, at).contiguous(), mesh, source, (64, 24))
        spec = _move.DTensorSpec(mesh, tuple(placed(to)), tensor_meta=x._spec.tensor_meta)
        assert torch.equal(_move.moved(x._local_tensor, x._spec, spec, Settings("always")), tile(full_array(), to, SIZES, at)), to
    uneven, source = full_array((62, 23)), ["P(sum)", "S(0)"]
    for to in (["S(1)", "R"], ["S(0)", "S(1)"], ["R", "S(1)"]):
        x = dtensor(tile(uneven, source, SIZES, at).contiguous(), mesh, source, (62, 23))
        spec = _move.DTensorSpec(mesh, tuple(placed(to)), tensor_meta=x._spec.tensor_meta)
        assert _move.move_of(x._spec, spec, Settings("always")).choice.how == "reduce, exchange", to
        assert torch.equal(_move.moved(x._local_tensor, x._spec, spec, Settings("always")), tile(uneven, to, SIZES, at) * 3), to


def a_second_process_group(rank):
    for number in range(3):
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2, 2))
        x = dtensor(tile(full_array(), ["S(0)", "S(0)"], SIZES, mesh.get_coordinate()).contiguous(), mesh, ["S(0)", "S(0)"], (64, 24))
        for to in (["S(1)", "S(1)"], ["R", "S(0)"], ["R", "R"]):
            spec = _move.DTensorSpec(mesh, tuple(placed(to)), tensor_meta=x._spec.tensor_meta)
            got = _move.moved(x._local_tensor, x._spec, spec, Settings("always"))
            assert torch.equal(got, tile(full_array(), to, SIZES, mesh.get_coordinate())), (number, to)
        dist.barrier()
        store = dist.PrefixStore(f"again {number}", dist.distributed_c10d._get_default_store())
        dist.destroy_process_group()
        dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=ranks.HANG)


def shards_in_another_order(rank):
    """The minor axis cuts first. If that is uneven, torch moves."""
    from torch.distributed.tensor import _dtensor_spec
    if not hasattr(_dtensor_spec, "ShardOrderEntry"):
        return  # an older torch
    mesh, order = mesh_of(SIZES), (_dtensor_spec.ShardOrderEntry(0, (1, 0)),)
    at = mesh.get_coordinate()
    for rows, how in ((64, {"program", "exchange"}), (62, {"torch"})):
        full = full_array((rows, 24))
        meta = on_mesh(full, SIZES, ["R", "R"])._spec.tensor_meta
        turned = _move.DTensorSpec(mesh, (Shard(0), Shard(0)), tensor_meta=meta, shard_order=order)
        plain = _move.DTensorSpec(mesh, (Shard(1), Shard(0)), tensor_meta=meta)
        ends = [tile(full, ["S(0)", "S(0)"], SIZES, at[::-1]).contiguous(), tile(full, ["S(1)", "S(0)"], SIZES, at).contiguous()]
        for source, target, held, want in ((turned, plain, *ends), (plain, turned, *ends[::-1])):
            assert _move.move_of(source, target, Settings("always")).choice.how in how
            assert torch.equal(_move.moved(held, source, target, Settings("always")), want), (rows, source, target)


class Install(unittest.TestCase):
    pass


def _test(work):
    def test(self):
        ranks.run(RANKS, work)
    return test


for _work in (first_and_second_gradients, a_checkpointed_step, other_meshes, an_async_move, compiled_programs,
              a_program_compiled_before_is_compiled_again, a_sum_that_stays_keeps_its_summands, refusals_are_torchs,
              memory_is_a_limit, calibrated_prices_are_the_same_everywhere, two_libraries_chain, a_mesh_in_another_order, a_second_process_group, shards_in_another_order):
    setattr(Install, f"test_{_work.__name__}", _test(_work))


class Warm(unittest.TestCase):
    def test_ranks_of_one_host_may_share_a_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                ranks.run(RANKS, a_program_from_a_cache, folder)


if __name__ == "__main__":
    unittest.main()
