"""Meshes, layouts, notations, plans and lists. They print the same as the tool."""

import os
import pickle
import subprocess
import threading
import unittest
import xml.etree.ElementTree

import ml_dtypes
import numpy

import reshard

MESH = reshard.Mesh({"x": 2, "y": 3})
SOURCE = reshard.Layout(MESH, "f32", (12288, 4096), ("x", None))
TARGET = reshard.parse_layout(MESH, "f32[12288@y,4096]")
TOOL = os.environ.get("RESHARD_TOOL", "")


def told(*arguments):
    """The output of the tool."""
    environment = dict(os.environ, NO_COLOR="1", ASAN_OPTIONS="detect_leaks=0")
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=True, env=environment).stdout


class Layouts(unittest.TestCase):
    def test_a_mesh_is_its_axes_and_devices(self):
        mesh = reshard.Mesh({"x": 2, "y": 3}, devices=[0, 2, 4, 1, 3, 5])
        self.assertEqual(str(mesh), "x=2,y=3[0,2,4,1,3,5]")
        self.assertEqual((mesh.axis_names, mesh.shape, mesh.size), (("x", "y"), {"x": 2, "y": 3}, 6))
        self.assertEqual(mesh.devices, (0, 2, 4, 1, 3, 5))
        self.assertEqual(mesh, reshard.parse_mesh(str(mesh)))
        self.assertNotEqual(mesh, MESH)
        self.assertEqual(reshard.Mesh([("x", 2)]), reshard.parse_mesh("x=2"))

    def test_a_layout_from_names_and_from_text(self):
        self.assertEqual(str(SOURCE), "f32[12288@x,4096]")
        self.assertEqual(reshard.Layout("x=2,y=3", numpy.float32, (12, 4), [("x", "y")]),
                         reshard.parse_layout(MESH, "f32[12@(x,y),4]"))
        self.assertEqual(str(reshard.Layout("x=4", "bf16", (8,), ("x:(2)2",))), "bf16[8@x:(2)2]")
        self.assertEqual(str(reshard.Layout(MESH, "f32", (4,), (), ["y"], "max")), "f32[4]{max:y}")
        self.assertEqual(str(reshard.Layout.from_placements("x=2,y=2", "f32", (5, 3), ["S(0)", "S(0)"])),
                         "f32[5@(x,y)[balanced],3]")

    def test_what_a_rank_holds(self):
        layout = reshard.parse_layout("x=3", "i16[7@x,2]")
        self.assertEqual([layout.tile_shape(rank) for rank in range(4)], [(3, 2), (3, 2), (1, 2), (0, 0)])
        self.assertEqual(layout.tile_offset(2), (6, 0))
        self.assertEqual(layout.tile_indices(1), (((3, 6),), ((0, 2),)))
        self.assertEqual((layout.tile_count(2), layout.tile_bytes, layout.global_bytes), (2, 12, 28))
        self.assertEqual((layout.shape, layout.ndim, layout.dtype, layout.ranks), ((7, 2), 2, "i16", 3))
        blocks = reshard.parse_layout("x=2", "f32[7@x/2]")
        self.assertEqual(blocks.tile_indices(0), (((0, 2), (4, 6)),))

    def test_the_same_cut_on_other_devices(self):
        layout = reshard.parse_layout("x=2,y=3", "f32[12@x,4]")
        self.assertEqual(layout.with_devices([5, 4, 3, 2, 1, 0]), reshard.parse_layout("x=2,y=3[5,4,3,2,1,0]", "f32[12@x,4]"))
        for devices in ([0, 1], [0, 0, 1, 2, 3, 4], [-1, 0, 1, 2, 3, 4]):
            self.assertRaises(reshard.InputError, layout.with_devices, devices)

    def test_every_dtype_has_a_numpy_one(self):
        for name in ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128",
                     "bf16", "f8_e4m3fn", "f8_e5m2"):
            layout = reshard.Layout("x=2", name, (4,), ("x",))
            self.assertEqual(reshard.Layout("x=2", layout.numpy_dtype, (4,), ("x",)), layout)
            self.assertEqual(layout.numpy_dtype.itemsize, layout.global_bytes // 4)
        self.assertEqual(reshard.Layout("x=1", ml_dtypes.bfloat16, ()).dtype, "bf16")
        for bad in (numpy.dtype(">f4"), "f12", numpy.dtype("M8[s]"), object):
            with self.assertRaises(reshard.InputError):
                reshard.Layout("x=1", bad, ())

    def test_values_are_values(self):
        for value in (MESH, SOURCE, reshard.Machine("dgx-h100:nodes=2"), reshard.parse_layout("x=2[3,1]", "f32[4@x]")):
            copy = pickle.loads(pickle.dumps(value))
            self.assertEqual(copy, value)
            self.assertEqual(hash(copy), hash(value))
        self.assertEqual(eval(repr(SOURCE), vars(reshard)), SOURCE)
        self.assertNotEqual(SOURCE, TARGET)
        self.assertFalse(SOURCE == "f32[12288@x,4096]")

    def test_every_notation_to_every_other(self):
        texts = {
            "jax": "f32[16@x,8@y]",
            "spec": "P('x', 'y')",
            "sdy": '#sdy.sharding<mesh<["x"=2, "y"=4]>, [{"x"}, {"y"}]>',
            "hlo": "{devices=[2,4]<=[8]}",
            "dtensor": "(Shard(dim=0), Shard(dim=1))",
        }
        self.assertEqual(tuple(texts), reshard.notations)
        for source, text in texts.items():
            layout = reshard.parse_layout("x=2,y=4", text, source, array="f32[16,8]")
            for target, wanted in texts.items():
                with self.subTest(source + " to " + target):
                    self.assertEqual(layout.format(target), wanted)
                    self.assertEqual(reshard.translate(text, source, target, "x=2,y=4", "f32[16,8]"), wanted)
        self.assertEqual(reshard.translate("{devices=[2,1,4]<=[4,2]T(1,0)}", "hlo", array="f32[16,16,16]"),
                         "f32[16@y,16,16@x]")


class Errors(unittest.TestCase):
    def test_text_has_a_caret_under_the_first_wrong_place(self):
        with self.assertRaises(reshard.InputError) as caught:
            reshard.parse_layout(MESH, "f32[8@z]")
        error = caught.exception
        self.assertEqual(str(error), "the mesh has no axis z\n  f32[8@z]\n        ^")
        self.assertEqual((error.code, error.message, error.text, error.offset),
                         ("layout", "the mesh has no axis z", "f32[8@z]", 6))
        self.assertIsInstance(error, ValueError)
        self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))

    def test_each_kind_is_an_exception_of_its_own(self):
        wrong = ((reshard.InputError, "usage", lambda: reshard.parse_layout(None, "{replicated}", "hlo")),
                 (reshard.InputError, "mismatch", lambda: reshard.synthesize(SOURCE, reshard.parse_layout(MESH, "f32[9]"))),
                 (reshard.InputError, "syntax", lambda: reshard.synthesize(SOURCE, TARGET, objective="beauty")),
                 (reshard.InputError, "syntax", lambda: reshard.synthesize(SOURCE, TARGET, disabled_rules=["luck"])),
                 (reshard.InputError, "syntax", lambda: reshard.synthesize(SOURCE, TARGET, peak_bytes_max="much")),
                 (reshard.InfeasibleError, "infeasible", lambda: reshard.synthesize(SOURCE, TARGET, peak_bytes_max=1)),
                 (reshard.UnsupportedError, "unsupported",
                  lambda: reshard.parse_layout("x=4", "f32[8@x:(2)2]").format("spec")))
        for kind, code, call in wrong:
            with self.assertRaises(kind) as caught:
                call()
            self.assertEqual(caught.exception.code, code, caught.exception)
            self.assertIsInstance(caught.exception, reshard.Error)
        for words, call in (("Mesh or its text", lambda: reshard.parse_layout(3, "f32[8]")),
                            ("Mesh or its text", lambda: reshard.parse_layout(3, "[8]", "dtensor", array="f32[8]")),
                            ("", lambda: reshard.synthesize(SOURCE, "f32[8]")),
                            ("an axis of a mesh", lambda: reshard.Mesh({1: 2})),
                            ("an axis of a mesh", lambda: reshard.Mesh({"x": "2"})),
                            ("an entry of a spec", lambda: reshard.Layout(MESH, "f32", (8,), (3,))),
                            ("an entry of a spec", lambda: reshard.Layout(MESH, "f32", (8,), (("x", None),))),
                            ("capabilities", lambda: reshard.synthesize(SOURCE, TARGET, capabilities=3)),
                            ("a first step", lambda: reshard.synthesize(SOURCE, TARGET, first_steps=[(1, "f32[8]")])),
                            ("names rules", lambda: reshard.synthesize(SOURCE, TARGET, disabled_rules=[1])),
                            ("a tensor is", lambda: reshard.CheckpointMapping("", [(1, "f32", (8,))]))):
            with self.assertRaisesRegex(TypeError, words):
                call()


class Plans(unittest.TestCase):
    def test_a_plan_and_its_price(self):
        plan = reshard.synthesize(SOURCE, TARGET, vocabulary="collectives")
        self.assertEqual([step.kind for step in plan.steps], ["slice", "permute", "all_gather"])
        self.assertEqual([step.changes for step in plan.steps], ["dim 0 +y", "4 of 6 tiles move", "dim 0 -x"])
        self.assertEqual((plan.received_bytes, plan.lower_bound_bytes, plan.peak_bytes), (64 << 20, 64 << 20, 96 << 20))
        self.assertTrue(plan.optimal and plan.search_complete)
        self.assertEqual((plan.source, plan.target, plan.ranks, plan.execution), (SOURCE, TARGET, 6, "steps"))
        self.assertAlmostEqual(plan.seconds, sum(step.seconds for step in plan.steps), delta=1e-9)
        self.assertTrue(plan.text.startswith("mesh x=2,y=3\nsource f32[12288@x,4096]\n"))
        self.assertEqual(reshard.synthesize(SOURCE, TARGET, vocabulary="collectives"), plan)

    def test_options(self):
        first = reshard.synthesize(SOURCE, TARGET, first_steps=[("all_gather", "f32[12288,4096]")])
        self.assertEqual([step.kind for step in first.steps], ["all_gather", "slice"])
        self.assertTrue(reshard.synthesize(SOURCE, TARGET, donate=True).donate)
        slow = reshard.synthesize(SOURCE, TARGET, machine="ethernet:nodes=6,per_node=1")
        self.assertEqual(slow.machine.name, "ethernet:nodes=6,per_node=1")
        self.assertNotEqual(slow.seconds, reshard.synthesize(SOURCE, TARGET).seconds)
        one = reshard.synthesize(SOURCE, TARGET, capabilities=reshard.Capabilities(one_exchange=True, ranks_per_node=6))
        self.assertEqual(one.execution, "one_exchange")
        for name in reshard.planning_rules:
            if name != "direct_exchange":
                reshard.synthesize(SOURCE, TARGET, disabled_rules=[name], footprint_bytes_max="1GiB", objective="bytes")

    def test_a_notebook_sees_table_and_picture(self):
        html = reshard.synthesize(SOURCE, TARGET)._repr_html_()
        self.assertIn("<pre> #  step", html)
        picture = html[html.index("<svg"):]
        self.assertTrue(xml.etree.ElementTree.fromstring(picture).tag.endswith("svg"))
        many = reshard.parse_layout("x=4096", "f32[4096@x]")
        self.assertNotIn("<svg", reshard.synthesize(many, many)._repr_html_())
        with self.assertRaises(reshard.UnsupportedError):
            reshard.synthesize(many, many).svg()

    def test_why_the_others_lost(self):
        explained = reshard.explain(SOURCE, TARGET, times=True)
        self.assertEqual(explained.plan, reshard.synthesize(SOURCE, TARGET))
        self.assertEqual(explained.policy_row, "one_mesh")
        self.assertEqual(explained.alternatives[0].lost, "")
        self.assertTrue(all(other.lost and other.seconds > 0 for other in explained.alternatives[1:]))
        self.assertIn("gather_then_slice", str(explained))

    def test_a_list_under_one_limit(self):
        planned = reshard.synthesize_list([(SOURCE, TARGET), (TARGET, SOURCE)], ["up", "down"], footprint_bytes_max="1GiB")
        self.assertEqual((planned.names, len(planned), sorted(sum(planned.buckets, []))), (["up", "down"], 2, [0, 1]))
        self.assertEqual(planned.plans[1].target, SOURCE)
        self.assertLessEqual(planned.footprint_bytes, 1 << 30)
        self.assertIn("2 arrays in", str(planned))
        self.assertIn("<pre>", planned._repr_html_())
        with self.assertRaises(reshard.InfeasibleError):
            reshard.synthesize_list([(SOURCE, TARGET)] * 3, footprint_bytes_max="1MiB")

    def test_a_list_counts_device_by_device(self):
        whole = reshard.parse_layout("x=8", "f32[64@x,16]")
        ends = [(whole, reshard.parse_layout(f"o=1[{i}]", "f32[64,16]")) for i in range(8)]
        planned = reshard.synthesize_list(ends)
        each = 7 * 8 * 16 * 4
        self.assertEqual((planned.received_bytes, planned.sent_bytes, planned.lower_bound_bytes), (each, each, each))
        self.assertTrue(planned.exact)
        self.assertEqual(planned.plans[0].received_bytes, each)
        self.assertLess(planned.seconds, sum(plan.seconds for plan in planned.plans))

    def test_a_reshape_that_looks_like_a_transposition_is_named(self):
        source, target = (reshard.parse_layout("x=2", text) for text in ("f32[4,8@x]", "f32[8,4@x]"))
        planned = reshard.synthesize(source, target)
        self.assertIn("f32[4,8@x] to f32[8,4@x] is read as a reshape", planned.note)
        self.assertIn("note: " + planned.note, str(planned))
        self.assertEqual(reshard.synthesize(source, reshard.parse_layout("x=2", "f32[4@x,8]")).note, "")

    def test_threads_ask_at_once(self):
        wanted = reshard.synthesize(SOURCE, TARGET)
        wrong = []

        def ask(number):
            for extent in range(6, 60, 6):
                source = reshard.parse_layout(MESH, f"f32[{extent}@x,{number + 1}]")
                reshard.synthesize(source, reshard.parse_layout(MESH, f"f32[{extent}@y,{number + 1}]"))
                if reshard.synthesize(SOURCE, TARGET) != wanted:
                    wrong.append(number)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    @unittest.skipUnless(TOOL, "this build has no tool")
    def test_the_tool_prints_the_same(self):
        question = ("--mesh", "x=2,y=3", str(SOURCE), str(TARGET))
        plan = reshard.synthesize(SOURCE, TARGET)
        self.assertEqual(str(plan) + "\n", told("plan", *question))
        self.assertEqual(plan.draw() + "\n", told("draw", *question))
        self.assertEqual(plan.svg(), told("draw", "--svg", *question))
        self.assertEqual(str(reshard.explain(SOURCE, TARGET)) + "\n", told("explain", *question))
        shuffled = reshard.parse_mesh("a=2,b=2,c=2[0,3,5,6,1,7,2,4]")
        ends = ("f32[8192@(a,b,c),8192]", "f32[8192,8192]")
        machine = "ethernet:nodes=2,per_node=4"
        nodes = str(reshard.synthesize(*(reshard.parse_layout(shuffled, end) for end in ends), machine=machine))
        self.assertIn("through nodes of 4 devices", nodes)
        self.assertEqual(nodes + "\n", told("plan", "--machine", machine, "--mesh", str(shuffled), *ends))
        limited = ("--donate", "--footprint-bytes-max", "1GiB", "--vocabulary", "collectives")
        donated = reshard.synthesize(SOURCE, TARGET, donate=True, footprint_bytes_max="1GiB", vocabulary="collectives")
        self.assertEqual(str(donated) + "\n", told("plan", *question, *limited))


if __name__ == "__main__":
    unittest.main(verbosity=1)
