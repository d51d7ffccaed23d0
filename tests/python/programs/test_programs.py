"""Programs and their schedules: against rules written here, against the tool, and against wrong input."""

import doctest
import json
import os
import pathlib
import re
import subprocess
import threading
import unittest

import reshard

ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[3]))
MIB = 1 << 20
PROGRAMS = ["refit buckets=6 pack=10ms move=15ms load=10ms", "1f1b stages=3 microbatches=5 forward=10ms move=4ms",
            "coupled windows=3 a=10ms b=14ms move=4ms", "zero3 layers=4", "zero_bubble stages=3 microbatches=4"]


def refit(buckets=4, text=False):
    """Two devices make weights in rows, two others load columns. Layouts as objects or as texts."""
    program = reshard.Program()
    program.limit("t=2[0,1]", "24MiB")
    program.limit(reshard.Mesh({"r": 2}, devices=[2, 3]), 24 * MIB)
    rows = "bf16[4096@t,2048]" if text else reshard.parse_layout("t=2[0,1]", "bf16[4096@t,2048]")
    columns = "bf16[4096,2048@r]" if text else reshard.parse_layout("r=2[2,3]", "bf16[4096,2048@r]")
    for i in range(buckets):
        program.task(f"pack{i}", "t=2[0,1]", 0.004, makes={f"w{i}": rows})
    for i in range(buckets):
        program.task(f"load{i}", "r=2[2,3]", 0.003, uses={f"w{i}": columns})
    return program


class Programs(unittest.TestCase):
    def keeps_the_rules(self, program, made):
        """Inputs first, one task at a time on a device and engine, nothing overlooked. Counts pairs that were compared."""
        lines = [json.loads(line) for line in str(program).splitlines()]
        tasks = {line["task"]: line for line in lines if "task" in line}
        makers = {array: name for name, line in tasks.items() for array in line.get("makes", {})}
        at = {one.name: one for one in made.order if not one.is_move}
        self.assertEqual(sorted(at), sorted(tasks))
        compared = 0
        for name, line in tasks.items():
            stated = line["seconds"] if "seconds" in line else line["picoseconds"] * 1e-12
            self.assertAlmostEqual(at[name].end - at[name].start, stated, delta=1e-11)
            moved = [one for one in made.order if one.is_move and name in one.users]
            for array in line.get("uses", {}):
                made_by = [one for one in moved if one.array == array] or ([at[makers[array]]] if array in makers else [])
                for one in made_by:
                    self.assertLessEqual(one.end, at[name].start + 1e-11)
                    compared += 1
            for earlier in line.get("after", []):
                self.assertLessEqual(at[earlier].end, at[name].start + 1e-11)
        for one in made.order:
            if one.is_move and one.array in makers:
                self.assertGreaterEqual(one.start, at[makers[one.array]].end - 1e-11)
                compared += 1
        engines = {}
        for name, line in tasks.items():
            for device in reshard.parse_mesh(line["mesh"]).devices:
                engines.setdefault((device, line.get("engine", "compute")), []).append(at[name])
        for held in engines.values():
            held.sort(key=lambda one: (one.start, one.end))
            for before, after in zip(held, held[1:]):
                self.assertLessEqual(before.end, after.start + 1e-11)
        self.assertEqual(made.seconds, max(one.end for one in made.order))
        self.assertLessEqual(made.lower_bound_seconds, made.seconds)
        for device in made.devices:
            self.assertEqual(device.peak_bytes, max(held for _, held in device.held))
            self.assertLessEqual(device.peak_bytes, device.limit_bytes or device.peak_bytes)
        return compared

    def test_schedules_keep_the_rules(self):
        compared = 0
        for text in PROGRAMS:
            with self.subTest(text):
                program = reshard.Program.generate(text)
                free = reshard.schedule(program, rounds=500)
                compared += self.keeps_the_rules(program, free)
                limit = max(device.peak_bytes for device in free.devices)
                compared += self.keeps_the_rules(program, reshard.schedule(program, 500, footprint_bytes_max=limit))
        self.assertGreater(compared, 200)

    def test_a_refit_meets_its_bound(self):
        program = refit()
        made = reshard.schedule(program)
        self.assertGreater(self.keeps_the_rules(program, made), 4)
        self.assertEqual((made.stop, made.optimal, made.seconds), ("bound", True, made.lower_bound_seconds))
        moves = [one for one in made.order if one.is_move]
        self.assertEqual([one.array for one in moves], ["w0", "w1", "w2", "w3"])
        self.assertEqual({one.received_bytes for one in moves}, {8 * MIB})
        self.assertEqual((str(moves[0].source), str(moves[0].target)), ("bf16[4096@t,2048]", "bf16[4096,2048@r]"))
        self.assertEqual([one.device for one in made.devices], [0, 2])
        self.assertLess(made.seconds, 4 * (0.004 + 0.003 + moves[0].end - moves[0].start))
        self.assertIn("compute 0", str(made))
        self.assertIn("pack0", made.chain())
        self.assertTrue(made.svg().startswith("<svg"))
        self.assertIn("traceEvents", json.loads(made.trace()))

    def test_arguments_and_lines_are_one_program(self):
        program = refit()
        self.assertEqual(program, refit(text=True))
        self.assertEqual(reshard.Program(str(program)), program)
        self.assertEqual(len(program), 8)
        self.assertEqual(program.task_names[::7], ["pack0", "load3"])
        full = reshard.Program()
        layout = reshard.parse_layout("x=2", "f32[8@x]")
        other = reshard.parse_layout("y=2[2,3]", "f32[8@y]")
        full.array("w", layout, kept=True)
        full.task("a", layout.mesh, 0.25, uses={"w": layout}, makes={"g": {"layout": "f32[8@x]", "kept": True}}, scratch="1KiB")
        full.task("b", "y=2[2,3]", 1, uses={"w": [other, {"layout": other, "again": True, "seconds": 0.5}]}, after=["a"],
                  engine="copies")
        full.task("c", "x=2", 1, uses={"w": {"layout": layout, "pieces": 0}, "g": layout}, makes={"h": layout}, donates=["g"])
        self.assertEqual([json.loads(line) for line in str(full).splitlines()], [
            {"array": "w", "mesh": "x=2", "layout": "f32[8@x]", "kept": True},
            {"task": "a", "mesh": "x=2", "seconds": 0.25, "uses": {"w": "f32[8@x]"},
             "makes": {"g": {"layout": "f32[8@x]", "kept": True}}, "scratch": 1024},
            {"task": "b", "mesh": "y=2[2,3]", "seconds": 1.0, "after": ["a"], "engine": "copies",
             "uses": {"w": ["f32[8@y]", {"layout": "f32[8@y]", "again": True, "seconds": 0.5}]}},
            {"task": "c", "mesh": "x=2", "seconds": 1.0, "uses": {"w": {"layout": "f32[8@x]", "pieces": 0}, "g": "f32[8@x]"},
             "makes": {"h": "f32[8@x]"}, "donates": ["g"]}])

    def rows_of(self, program, split):
        """The rows of a generated pipeline as torch writes them; 1F0 is F1.0 here. `split`: B is only the input's gradient."""
        rows = {}
        for line in map(json.loads, str(program).splitlines()):
            if "task" in line:
                kind, stage, batch = re.fullmatch(r"(.)(\d+)\.(\d+)", line["task"]).groups()
                rows.setdefault(line["mesh"], []).append(f"{stage}{'I' if split and kind == 'B' else kind}{batch}")
        meshes = sorted(rows, key=lambda mesh: reshard.parse_mesh(mesh).devices)
        return "\n".join(",".join(rows[mesh]) + ",," for mesh in meshes), meshes

    def test_rows_of_torch_are_the_generated_pipelines(self):
        for text in ("gpipe", "1f1b", "eager", "interleaved chunks=2", "zero_bubble"):
            with self.subTest(text):
                made = reshard.Program.generate(f"{text} stages=3 microbatches=6 forward=10ms backward=20ms move=4ms width=2")
                rows, meshes = self.rows_of(made, "zero" in text)
                read = reshard.pipeline_of_rows(rows, meshes, {"F": 0.01, "B": 0.02, "I": 0.02, "W": 0.01},
                                                message="u8[2097152@d]", activation="u8[33554432@d]", move_seconds=0.004)
                self.assertEqual(len(read), len(made))
                ours, theirs = reshard.schedule(read, 300), reshard.schedule(made, 300)
                self.assertEqual((ours.seconds, ours.written_seconds, ours.lower_bound_seconds),
                                 (theirs.seconds, theirs.written_seconds, theirs.lower_bound_seconds))
                self.assertEqual([(one.device, one.peak_bytes) for one in ours.devices],
                                 [(one.device, one.peak_bytes) for one in theirs.devices])
                self.assertGreater(self.keeps_the_rules(read, ours), 20)

    def test_stages_of_other_widths(self):
        layouts = {"message": "bf16[64@t,32]", "activation": "bf16[256@t,32]"}
        read = reshard.pipeline_of_rows("0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1", ["t=2[0,1]", "t=4[2,3,4,5]"],
                                        {"F": 1e-3, "B": 2e-3}, **layouts)
        made = reshard.schedule(read)
        self.assertEqual({(one.array, one.source.mesh == one.target.mesh) for one in made.order if one.is_move},
                         {("x1.0", False), ("x1.1", False), ("g1.0", False), ("g1.1", False)})
        wrong = [("0F0,0SEND_F0", "row 1, column 2: '0SEND_F0' is no compute action"), ("0F0,0F0", "row 1: 0F0 is there twice"),
                 ("0F0,0B0,0I0", "0I0 is there twice"), ("0B0,0F0", "row 1 waits for ever at 0B0"), ("0F0,0W0", "0W0 has no time"),
                 ("1F0,0F0", "row 1 waits for ever at 1F0"), ("0F0\n0B0", "2 rows; one for each of 1 meshes")]
        for rows, words in wrong:
            with self.subTest(rows), self.assertRaisesRegex(reshard.InputError, words):
                reshard.pipeline_of_rows(rows, ["t=2"], {"F": 1e-3, "B": 2e-3, "I": 1e-3}, **layouts)
        with self.assertRaisesRegex(reshard.InputError, "stage 0 is on rows 1 and 2"):
            reshard.pipeline_of_rows("0F0\n0B0", ["t=2", "t=2[2,3]"], {"F": 1.0, "B": 1.0}, **layouts)
        with self.assertRaisesRegex(reshard.InputError, "1 layouts of message; one for each of 2 rows"):
            reshard.pipeline_of_rows("0F0\n1F0", ["t=2", "t=2[2,3]"], {"F": 1.0}, message=["u8[4]"], activation="u8[4]")

    def test_the_tool_has_the_same_schedule(self):
        tool = os.environ.get("RESHARD_TOOL")
        if not tool:
            self.skipTest("no tool in this build")
        for program in (refit(), reshard.Program.generate(PROGRAMS[1])):
            ran = subprocess.run([tool, "schedule", "-", "--json"], input=str(program), capture_output=True, text=True,
                                 check=True)
            printed, made = json.loads(ran.stdout), reshard.schedule(program)
            self.assertEqual([(one["start_ps"], one["end_ps"], one.get("move") or one["task"]) for one in printed["order"]],
                             [(round(one.start * 1e12), round(one.end * 1e12), one.name) for one in made.order])
            for device in (0, 2):
                ran = subprocess.run([tool, "schedule", "-", "--script", str(device)], input=str(program),
                                     capture_output=True, text=True, check=True)
                self.assertEqual(json.loads(ran.stdout), made.script(device))
            self.assertEqual([one["peak_bytes"] for one in printed["devices"]], [one.peak_bytes for one in made.devices])

    def test_wrong_tasks_are_not_added(self):
        program = refit()
        before = str(program)
        wrong = [(("t", "t=2[0,1]", -1.0), {}, "seconds"), (("t", "t=2[0,1]", float("nan")), {}, "nan seconds"),
                 (("t", "t=", 1.0), {}, ""), (("t", "t=2", 1.0), {"makes": {"a": "f32[4@u]"}}, "a: "),
                 (("t", "t=2", 1.0), {"makes": {"a": {"layout": "f32[4]", "keep": True}}}, '"keep"'),
                 (("t", "t=2", 1.0), {"uses": {"a": 3}}, "a"), (("t", "t=2", 1.0), {"scratch": -4}, "scratch"),
                 (("t", "t=2", 1.0), {"scratch": "4 things"}, ""), ((5, "t=2", 1.0), {}, "task")]
        for given, named, words in wrong:
            with self.subTest(given=given, named=named), self.assertRaisesRegex(reshard.InputError, words):
                program.task(*given, **named)
        with self.assertRaisesRegex(reshard.InputError, "line 2: .*\"colour\""):
            program.add_lines('{"limit": 1, "mesh": "x=2"}\n{"task": "a", "mesh": "x=2", "colour": 1}')
        self.assertRaises(reshard.InputError, program.limit, "t=2", -1)
        self.assertRaisesRegex(reshard.Error, "line 1", reshard.Program, "no JSON")
        self.assertRaises(TypeError, reshard.Program, 3)
        self.assertRaises(TypeError, program.task, "t", "t=2", "1 s")
        self.assertRaises(TypeError, program.task, "t", "t=2", 1.0, scratch=1.5)
        self.assertRaises(TypeError, program.task, "t", "t=2", 1.0, makes={"a": object()})
        with self.assertRaisesRegex(reshard.InputError, "1f1b"):
            reshard.Program.generate("two_f2b")
        self.assertEqual(str(program), before)

    def test_questions_without_an_answer(self):
        program = refit()
        with self.assertRaisesRegex(reshard.InfeasibleError, "device 0 needs .* its limit is 1.0 MiB"):
            reshard.schedule(program, footprint_bytes_max="1MiB")
        self.assertRaisesRegex(reshard.InputError, "-1", reshard.schedule, program, -1)
        self.assertRaises(TypeError, reshard.schedule, program, colour=1)
        self.assertRaises(TypeError, reshard.schedule, str(program))
        program.task("pack0", "t=2[0,1]", 1.0)
        self.assertRaisesRegex(reshard.InputError, "pack0", reshard.schedule, program)
        lost = reshard.Program()
        lost.task("a", "x=2", 1.0, uses={"nothing": "f32[4@x]"})
        self.assertRaisesRegex(reshard.InputError, "nothing", reshard.schedule, lost)
        self.assertEqual(reshard.schedule(reshard.Program()).order, [])
        self.assertRaisesRegex(reshard.InputError, "device 4 is in no mesh", reshard.schedule(refit()).script, 4)

    def test_tasks_that_are_added_meanwhile(self):
        program, ends = reshard.Program.generate(PROGRAMS[1]), []
        asking = [threading.Thread(target=lambda: ends.append(reshard.schedule(program, 2000).seconds)) for _ in range(2)]
        for thread in asking:
            thread.start()
        for i in range(200):
            program.task(f"more{i}", "t=2[900,901]", 0.0)
        for thread in asking:
            thread.join()
        self.assertEqual(ends, [reshard.schedule(program, 2000).seconds] * 2)

    def test_the_pages(self):
        for name in ("docs/programs.md", "docs/refit.md"):
            page = (ROOT / name).read_text(encoding="utf-8")
            lines = "\n".join(re.findall(r"^```python\n(.*?)^```", page, re.S | re.M))
            session = doctest.DocTestParser().get_doctest(lines, {}, name, name, 0)
            said = []
            ran = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(session, out=said.append)
            self.assertEqual(ran.failed, 0, "".join(said))
            self.assertGreater(ran.attempted, 8)


if __name__ == "__main__":
    unittest.main(verbosity=1)
