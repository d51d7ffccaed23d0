"""The half of reshard.torch that is ours, on a stub of torch's names: the choice, install and uninstall, and refusals. Needs no
torch. The tests beside it run on torch itself."""

import random
import subprocess
import sys
import unittest
from unittest import mock

import stub
from stub import DeviceMesh, DTensorSpec, Partial, Replicate, Shard, StridedShard, TensorMeta

import reshard
import reshard.torch
from reshard.torch import Prices, _axes, _choice, _everywhere, _packing, _specs
from reshard.torch._choice import Settings

MOVES, DISPATCH = (sys.modules[f"torch.distributed.tensor.{name}"] for name in ("_redistribute", "_dispatch"))
GRID = DeviceMesh(2, 4)
R, S = Replicate(), Shard


def spec(*placements, shape=(64, 64), mesh=GRID):
    return DTensorSpec(mesh, placements, TensorMeta(shape))


def chosen(source, target, policy="bytes", memory=None, prices=None):
    return _choice.choose(spec(*source), spec(*target), Settings(policy, prices), memory)


class Choices(unittest.TestCase):
    def test_two_axes_of_one_dimension_take_one_exchange(self):
        choice = chosen((S(0), S(0)), (S(1), S(1)))
        self.assertIn(choice.how, ("exchange", "program"))
        self.assertEqual((choice.price.received, len(choice.price.calls)), (64 * 64 * 4 // 8 * 7 // 8, 1))
        self.assertGreater(_axes.torch_price(spec(S(0), S(0)), spec(S(1), S(1))).received, choice.price.received)

    def test_a_tie_is_torchs(self):
        for source, target in (((S(0), R), (R, R)), ((R, R), (S(0), R)), ((Partial(), R), (R, R)), ((Partial(), R), (S(0), R))):
            for policy in ("bytes", "time"):
                self.assertEqual(chosen(source, target, policy).how, "torch", (source, target, policy))

    def test_rows_that_arrive_in_their_place_are_not_copied(self):
        for dim, copied in ((0, False), (1, True)):
            ends = [_specs.layout_of(spec(*one)) for one in ((S(dim), S(dim)), (R, S(dim)))]
            self.assertEqual(_choice.exchange_price(*ends).copied > 0, copied)

    def test_torch_gathers_if_an_exchange_has_as_much_to_do(self):
        kinds = dict.fromkeys(("all_gather", "all_to_all", "reduce_scatter", "all_reduce"), 0.0)
        slow_gather = Prices(kinds, kinds, {**kinds, "all_gather": 1.0}, 0.0)
        self.assertEqual(chosen((S(0), R), (R, R), "time", prices=slow_gather).how, "torch")
        self.assertEqual(chosen((S(0), S(0)), (R, S(0)), "time", prices=slow_gather).how, "exchange")

    def test_a_sum_is_reduced_first(self):
        choice = chosen((Partial(), S(0)), (S(0), S(1)))
        self.assertEqual(choice.how, "reduce, exchange")
        self.assertFalse(any(one.is_partial() for one in choice.middle))

    def test_replicas_are_cut_before_a_sum_is_reduced(self):
        cube = DeviceMesh(2, 2, 2)
        choice = _choice.choose(spec(R, Partial("max"), R, shape=(18, 14), mesh=cube), spec(S(1), S(0), S(1), shape=(18, 14), mesh=cube),
                                Settings("bytes"))
        self.assertEqual([(axis, str(end)) for axis, _, end in choice.reductions], [(0, "S(1)"), (2, "S(1)"), (1, "S(0)")])
        self.assertEqual((choice.how, choice.price.received), ("reduce, exchange", 9 * 4 * 4))  # half of an 18 x 4 tile

    def test_the_reduction_that_pads_least_is_first(self):
        uneven = DeviceMesh(2, 3)
        source = spec(Partial(), Partial(), shape=(12, 17), mesh=uneven)
        (changes, price), = _axes.reductions(source, [(S(1), S(0))])
        self.assertEqual([axis for axis, _, _ in changes], [1, 0])
        self.assertEqual(price.received, 4 * (4 * 17 * 2 + 4 * 9))
        self.assertEqual([axis for axis, _, _ in _axes.reductions(source, [(S(1), S(1))])[0][0]], [0, 1])  # the order of torch.chunk

    def test_the_price_of_each_change_of_an_axis(self):
        whole, partial = -1, -2
        for shape, ranks, held, to, native, calls, copied, peak, most in (
                ((9, 5), 4, 0, 1, True, [("all_to_all", 4, 72)], 120, 72, 252),  # padded to 12 x 8
                ((9, 5), 4, 0, 1, False, [("all_gather", 4, 180)], 72, 240, 432),
                ((8, 6), 2, 1, whole, True, [("all_gather", 2, 96)], 192, 192, 576),
                ((8, 6), 2, partial, 1, True, [("reduce_scatter", 2, 96)], 192, 192, 672),
                ((8, 6), 2, partial, whole, True, [("all_reduce", 2, 192)], 0, 192, 768),
                ((8, 6), 2, whole, 0, True, [], 96, 192, 672),
                ((8, 6), 1, 0, 1, True, [], 0, 192, 192)):
            found = reshard._core.axis_prices(shape, 4, [ranks], [held], native, [[(0, to, False)]], True)
            self.assertEqual(found, [([0], (calls, copied, peak, most))], (shape, held, to, native))
        with self.assertRaises(IndexError):
            reshard._core.axis_prices((8, 6), 4, [2], [0], True, [[(1, 0, False)]], True)

    def test_ways_that_are_not_priced_would_not_be_chosen(self):
        rng, cube, skipped = random.Random(5), DeviceMesh(2, 2, 2), 0
        for _ in range(150):
            shape = tuple(rng.choice((4, 6, 8, 9, 16)) * rng.choice((1, 256)) for _ in range(2))
            source = spec(*rng.choices((R, S(0), S(1), Partial()), k=3), shape=shape, mesh=cube)
            target = spec(*rng.choices((R, S(0), S(1)), k=3), shape=shape, mesh=cube)
            if len(list(_axes.middles(source, target))) > _choice._EXCHANGES_MAX:
                continue
            for policy in ("time", "bytes"):
                with mock.patch.object(_choice, "exchange_price", wraps=_choice.exchange_price) as priced:
                    quick, few = _choice.choose(source, target, Settings(policy)), priced.call_count
                    every = _choice.choose(source, target, Settings(policy), memory=1 << 50)  # a limit needs all prices
                skipped += priced.call_count - 2 * few
                self.assertEqual((quick.how, quick.price), (every.how, every.price), (source, target, policy))
        self.assertGreater(skipped, 0)

    def test_a_strided_dimension_is_cut_no_further(self):
        cube = DeviceMesh(2, 2, 2)
        source = spec(StridedShard(0, 2), S(0), Partial(), mesh=cube)
        found = [middle[2] for middle in _axes.middles(source, spec(R, R, S(0), mesh=cube))]
        self.assertEqual(set(found), {S(1), R})

    def test_rows_that_are_a_tile_need_no_copy(self):
        for ends, is_tile in ((("f32[8@(x,y),8]", "f32[8@y,8]"), True), (("f32[8,8@(x,y)]", "f32[8,8@y]"), False)):
            schedule = reshard.RowSchedule([tuple(reshard.parse_layout("x=2,y=2", end) for end in ends)])
            for rank in range(4):
                self.assertEqual(_packing.Rows(schedule.nested_rows(rank, "receive"), 4).in_order("target"), is_tile)

    def test_a_sum_that_stays_keeps_its_axis_out_of_the_move(self):
        cube = DeviceMesh(2, 2, 2)
        choice = _choice.choose(spec(Partial("max"), S(0), S(0), mesh=cube), spec(Partial("max"), S(1), S(1), mesh=cube),
                                Settings("always"))
        self.assertEqual(choice.axes, (1, 2))

    def test_what_layouts_do_not_have_stays_torchs(self):
        class Masked(Partial):
            pass
        for source, target in (((Masked(), S(0)), (S(0), S(1))), ((R, S(0)), (Partial(), S(1)))):
            choice = chosen(source, target)
            self.assertEqual(choice.how, "torch")
            self.assertTrue(choice.why)
        self.assertEqual(_choice.choose(DTensorSpec(GRID, (R, R)), spec(R, R), Settings()).why, "the spec has no shape")
        self.assertEqual(_choice.choose(spec(S(0), R, shape=("n", 8)), spec(R, R, shape=("n", 8)), Settings()).why, "sizes are symbols")

    def test_time_is_by_prices(self):
        kinds = ("all_gather", "all_to_all", "reduce_scatter", "all_reduce")
        slow_exchange = Prices({kind: 1.0 if kind == "all_to_all" else 0.0 for kind in kinds}, dict.fromkeys(kinds, 0.0),
                               dict.fromkeys(kinds, 1e-9), 0.0)
        slow_bytes = Prices(dict.fromkeys(kinds, 0.0), dict.fromkeys(kinds, 0.0), dict.fromkeys(kinds, 1.0), 0.0)
        pair = (S(0), S(0)), (S(1), R)
        self.assertEqual(chosen(*pair, "time", prices=slow_exchange).how, "torch")
        self.assertIn(chosen(*pair, "time", prices=slow_bytes).how, ("exchange", "program"))
        self.assertEqual(Prices.from_json(slow_bytes.json()), slow_bytes)
        for text in ("{}", "[]", "no", slow_bytes.json().replace("1.0", "-1")):
            with self.assertRaises(reshard.InputError):
                Prices.from_json(text)
        self.assertGreater(Prices.of_machine("ethernet:nodes=4,per_node=8", 32).byte["all_gather"],
                           Prices.of_machine("dgx-h100:nodes=4", 8).byte["all_gather"])

    def test_memory_is_a_limit(self):
        tile = 64 * 64 * 4 // 8
        self.assertIsNotNone(chosen((S(0), S(0)), (S(1), S(1)), memory=4 * tile))
        with self.assertRaisesRegex(reshard.InfeasibleError, f"memory is {tile} bytes.*at least"):
            chosen((S(0), S(0)), (S(1), S(1)), memory=tile)

    def test_bytes_beyond_32_bits(self):
        n = 1 << 20
        choice = _choice.choose(spec(S(0), S(0), shape=(n, n)), spec(S(1), S(1), shape=(n, n)), Settings("bytes"))
        self.assertEqual(choice.price.received, 4 * n * n // 8 * 7 // 8)


class Install(unittest.TestCase):
    def tearDown(self):
        self.assertIs(MOVES.redistribute_local_tensor, stub.moved_by_torch)
        self.assertIs(DISPATCH.redistribute_local_tensor, stub.moved_by_torch)
        self.assertEqual(sys.modules["torch"].compiler.config.cache_key_tag, "theirs")

    def test_the_name_is_replaced_in_every_module_and_put_back(self):
        with reshard.torch.installed():
            self.assertIsNot(MOVES.redistribute_local_tensor, stub.moved_by_torch)
            self.assertIs(MOVES.redistribute_local_tensor, DISPATCH.redistribute_local_tensor)
            time = sys.modules["torch"].compiler.config.cache_key_tag
            with reshard.torch.installed("bytes"):
                self.assertNotEqual(sys.modules["torch"].compiler.config.cache_key_tag, time)
            self.assertRegex(time, "^theirs;reshard .* time usual rank")
            kept = MOVES.redistribute_local_tensor
        self.assertEqual(kept(None, spec(R, R), spec(S(0), R)), "torch moved it")
        reshard.torch.uninstall()  # once too often changes nothing

    def test_equal_settings_are_one_so_that_moves_are_planned_once(self):
        seen, prices = [], Prices.of_machine("laptop", 8)
        for policy, given in (("bytes", None), ("bytes", None), ("time", prices), ("time", Prices.from_json(prices.json()))):
            with reshard.torch.installed(policy, prices=given):
                seen.append(_everywhere.settings())
        self.assertIs(seen[0], seen[1])
        self.assertIs(seen[2], seen[3])
        self.assertIsNot(seen[0], seen[2])

    def test_another_signature_is_refused_and_torch_stays(self):
        def strange(tensor, source, target):
            return "strange"
        MOVES.redistribute_local_tensor = strange
        try:
            with self.assertRaisesRegex(reshard.UnsupportedError, r"tensor, source, target.*local_tensor, current_spec"):
                reshard.torch.install()
            self.assertIs(MOVES.redistribute_local_tensor, strange)
        finally:
            MOVES.redistribute_local_tensor = stub.moved_by_torch

    def test_each_private_name_that_is_missing_is_refused_by_its_name(self):
        c10d = sys.modules["torch.distributed.distributed_c10d"]
        for holder, name in ((MOVES, "redistribute_local_tensor"), (MOVES, "_gen_transform_infos"), (MOVES, "_are_we_tracing"),
                             (c10d, "_get_default_group"), (c10d, "_hash_ranks_to_str"), (c10d, "_world"), (c10d._world, "group_count")):
            held = getattr(holder, name)
            delattr(holder, name)
            try:
                with self.assertRaisesRegex(reshard.UnsupportedError, rf"torch stub has no torch\.distributed\S*\.{name}\b"):
                    reshard.torch.install()
            finally:
                setattr(holder, name, held)
            self.assertIs(MOVES.redistribute_local_tensor, stub.moved_by_torch)

    def test_a_wrong_policy_is_an_error(self):
        with self.assertRaisesRegex(reshard.InputError, "'fastest'; 'time' or 'bytes'"):
            reshard.torch.install("fastest")

    def test_torch_is_not_imported_before_it_is_asked_for(self):
        program = "import sys, reshard; assert 'torch' not in sys.modules and 'reshard.torch' not in sys.modules"
        self.assertEqual(subprocess.run([sys.executable, "-c", program], check=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
