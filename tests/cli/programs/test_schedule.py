"""`schedule`: programs as lines of JSON, their schedules as text, JSON, a drawing and a trace."""

import json
import pathlib
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import tool

LINES = """
{"limit": "24MiB", "mesh": "t=2[0,1]"}
{"array": "x", "mesh": "t=2[0,1]", "layout": "f32[8@t]", "kept": true}

{"task": "pack0", "mesh": "t=2[0,1]", "seconds": 0.004, "uses": {"x": "f32[8@t]"}, "makes": {"w0": "bf16[4096@t,2048]"}}
{"task": "pack1", "mesh": "t=2[0,1]", "seconds": 0.004, "makes": {"w1": "bf16[4096@t,2048]"}, "scratch": "1KiB"}
{"task": "load0", "mesh": "r=2[2,3]", "picoseconds": 3000000001, "uses": {"w0": "bf16[4096,2048@r]"}}
{"task": "both", "mesh": "r=2[2,3]", "seconds": 1, "after": ["load0"], "engine": "host",
 "uses": {"w0": [{"layout": "bf16[4096,2048@r]", "again": true, "seconds": 0.5}, "bf16[4096@r,2048]"]}}
""".replace(',\n "uses"', ', "uses"')


class Schedules(tool.Case):
    def schedule(self, *arguments, text=None, code=0):
        path = self.path("program.jsonl")
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            arguments = (path, *arguments)
        ran = tool.reshard("schedule", *arguments)
        self.assertEqual(ran.code, code, ran.err)
        return ran.err if code else ran.out

    def test_a_program_comes_back_as_it_was_read(self):
        printed = self.schedule("--print-program", text=LINES)
        self.assertEqual(printed, self.schedule("--print-program", text=printed))
        self.assertIn('"picoseconds":3000000001', printed.replace('"seconds":0.003000000001', '"picoseconds":3000000001'))

    def test_the_json_has_the_order_and_the_bytes(self):
        answer = json.loads(self.schedule("--json", text=LINES))
        order = answer["order"]
        ends = {one.get("task", one.get("move")): one for one in order}
        moves = [one for one in order if "move" in one]
        self.assertEqual([one["users"] for one in moves], [["load0"], ["both"], ["both"]])
        self.assertEqual(moves[1]["end_ps"] - moves[1]["start_ps"], 500_000_000_000)
        self.assertEqual(answer["end_ps"], ends["both"]["end_ps"])
        self.assertLessEqual(answer["lower_bound_ps"], answer["end_ps"])
        for one in moves:
            self.assertGreaterEqual(one["start_ps"], ends["pack0"]["end_ps"])
        # 8 MiB of weights on each sender while they are used, 16 bytes that are kept.
        held = dict(answer["devices"][0]["held"])
        self.assertEqual(held[0], 8 * 2**20 + 16)
        self.assertEqual(answer["devices"][0]["held"][-1][1], 16)
        self.assertEqual(answer["devices"][0]["limit_bytes"], 24 * 2**20)

    def test_a_move_that_stands_alone_comes_in_pieces(self):
        lines = """{"task": "make", "mesh": "t=2[0,1]", "seconds": 0.005, "makes": {"w": "f32[4096@t,1024]"}}
{"task": "load", "mesh": "r=2[2,3]", "seconds": 0.004, "uses": {"w": {"layout": "f32[4096,1024@r]", "pieces": 0}}}
"""
        make, move, load = json.loads(self.schedule("--json", text=lines))["order"]
        self.assertRegex(move["pieces"], r"^split dim 0 block 2048 ends [\d,]+,2048 .*overlapped$")
        self.assertEqual(move["start_ps"], make["end_ps"])
        self.assertLess(load["start_ps"], move["end_ps"])
        self.assertGreaterEqual(load["end_ps"], move["end_ps"])
        whole = json.loads(self.schedule("--json", text=lines.replace(', "pieces": 0', "")))
        self.assertNotIn("pieces", whole["order"][1])
        self.assertGreater(whole["end_ps"], load["end_ps"])
        self.assertIn("moves 1, 1 in pieces", self.schedule(text=lines))
        self.assertIn("each piece of w to f32[4096,1024@r] on r=2[2,3] arrives in time", self.schedule("--chain", text=lines))
        self.assertEqual(self.schedule("--print-program", text=lines).count('"pieces":0'), 1)
        step = json.loads(self.schedule("--script", "2", text=lines))["steps"][1]
        self.assertEqual((step["task"], step["after"], step["beside"]), ("load", [], 1))
        for wrong, words in ((2, "along dimension 2"), (-1, "whole number"), ('"0"', "whole number")):
            text = lines.replace('"pieces": 0', f'"pieces": {wrong}')
            self.assertIn(words, self.schedule(text=text, code=2))

    def test_answers_are_the_same_each_time(self):
        arguments = ("--generate", "1f1b stages=3 microbatches=4 move=9ms activations=3", "--rounds", "300", "--json")
        self.assertEqual(self.schedule(*arguments), self.schedule(*arguments))

    def test_a_limit_holds_and_is_named(self):
        arguments = ("--generate", "refit buckets=4 move=20ms", "--footprint-bytes-max")
        answer = json.loads(self.schedule(*arguments, "32MiB", "--json"))
        self.assertTrue(all(device["peak_bytes"] <= 32 * 2**20 for device in answer["devices"]))
        self.assertIn("device 4 needs 32.0 MiB", self.schedule(*arguments, "31MiB", code=1))

    def test_drawing_and_trace_are_well_formed(self):
        arguments = ("--generate", "zero3 layers=3")
        drawing = xml.etree.ElementTree.fromstring(self.schedule(*arguments, "--svg"))
        trace = json.loads(self.schedule(*arguments, "--trace"))["traceEvents"]
        answer = json.loads(self.schedule(*arguments, "--json"))
        boxes = [box for box in drawing.iter("{http://www.w3.org/2000/svg}rect") if len(box)]
        runs = [event for event in trace if event["ph"] == "X"]
        self.assertEqual(len(boxes), len(runs))
        self.assertEqual({run["name"] for run in runs}, {one.get("task", one.get("move")) for one in answer["order"]})
        self.assertAlmostEqual(max(run["ts"] + run["dur"] for run in runs), answer["end_ps"] / 1e6, places=3)
        self.assertTrue(any(event["ph"] == "C" for event in trace))

    def test_the_frontier_falls(self):
        lines = self.schedule("--generate", "1f1b stages=3 microbatches=5 move=9ms", "--rounds", "100", "--frontier").splitlines()
        ratios = [float(line.split()[-1][:-1]) for line in lines[1:]]
        self.assertGreater(len(ratios), 2)
        self.assertEqual(ratios[-1], 1.0)
        self.assertGreater(ratios[0], 1.0)

    def test_hlo_says_how_far_xla_is_from_the_bound(self):
        module = str(pathlib.Path(__file__).resolve().parents[2] / "unit" / "program" / "step.hlo")
        seconds = self.path("seconds.json")
        pathlib.Path(seconds).write_text('{"ag0": 1, "ag1": 2, "dot0": 4, "dot1": 8}', encoding="utf-8")
        arguments = ("--hlo", module, "--seconds", seconds)
        self.assertIn("XLA's own order takes 1.154x the bound; collectives: 2 overlapped, 0 waited for at once",
                      self.schedule(*arguments))
        answer = json.loads(self.schedule(*arguments, "--json"))
        self.assertEqual((answer["written_ps"], answer["end_ps"]), (15 * 10**12, 13 * 10**12))
        # Without times the machine prices them: half of 256 bytes, and copies of 768 and 768 bytes.
        machine = self.path("machine")
        pathlib.Path(machine).write_text("machine m\nlevel l devices all message 1us bandwidth 1GB/s\ncopy 1GB/s\n")
        order = json.loads(self.schedule("--hlo", module, "--machine", machine, "--json"))["order"]
        self.assertEqual([one["end_ps"] - one["start_ps"] for one in order if one["task"].startswith("dot")], [768_000] * 2)
        self.assertEqual([one["end_ps"] - one["start_ps"] >= 1_128_000 for one in order if one["task"].startswith("ag")], [True] * 2)
        pathlib.Path(seconds).write_text('{"ag0": "x"}', encoding="utf-8")
        self.assertIn("an object of names and seconds is wanted", self.schedule(*arguments, code=2))
        self.assertIn("no computation body; it has main, region", self.schedule("--hlo", module, "--computation", "body", code=2))

    def test_scripts_of_devices_make_the_schedule(self):
        arguments = ("--generate", "refit buckets=3 move=20ms", "--footprint-bytes-max", "32MiB")
        order = json.loads(self.schedule(*arguments, "--json"))["order"]
        scripts = [json.loads(self.schedule(*arguments, "--script", device)) for device in ("0", "3", "4", "5")]
        self.assertEqual(scripts[0]["steps"], scripts[1]["steps"])
        seen = set()
        for script in scripts:
            self.assertEqual(script["limit_bytes"], 32 * 2**20)
            numbers = [step["activity"] for step in script["steps"]]
            self.assertEqual(numbers, sorted(numbers))
            for step in script["steps"]:
                one = order[step["activity"]]
                kind = "move" if "move" in one else "task"
                self.assertEqual(step[kind], one[kind])
                self.assertTrue(all(order[earlier]["end_ps"] <= one["start_ps"] for earlier in step["after"]))
                if kind == "move":
                    self.assertEqual((step["sends"], step["receives"]), (script["device"] < 4, script["device"] >= 4))
            seen.update(numbers)
        self.assertEqual(seen, set(range(len(order))))
        held = {one["array"]: one for one in scripts[0]["memory"] if "array" in one}
        move, = [step["activity"] for step in scripts[0]["steps"] if step.get("array") == "w0"]
        self.assertEqual(held["w0"], {"array": "w0", "layout": "bf16[33554432@d]", "bytes": 16 * 2**20, "taken_by": 0,
                                      "freed_by": [move]})
        self.assertIn("--script: device 6 is in no mesh", self.schedule(*arguments, "--script", "6", code=2))

    def test_comparisons_name_the_program_that_ends_first(self):
        path = self.path("program.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(LINES)
        slow, fast = "refit buckets=4 move=20ms hold=1", "refit buckets=4 move=20ms"
        ends = [json.loads(self.schedule("--generate", one, "--json"))["end_ps"] for one in (slow, fast)]
        self.assertGreater(*ends)
        answer = json.loads(self.schedule("--json", "--compare", fast, slow, path))
        self.assertEqual((answer["first"], answer["certain"]), (0, True))
        self.assertEqual([one["end_ps"] for one in answer["programs"][:2]], ends[::-1])
        self.assertEqual([one["program"] for one in answer["programs"]], [fast, slow, path])
        text = tool.reshard("schedule", "--compare", slow, fast)
        self.assertEqual(text.code, 1, text.err)
        self.assertIn(f"{fast} ends first: no order of another program ends sooner", text.out)
        self.assertIn("2 programs end first", self.schedule("--compare", fast, fast))

    def test_a_program_without_room_does_not_end_first(self):
        slow, fast = "refit buckets=4 move=20ms pack=90ms bucket=8MiB", "refit buckets=4 move=20ms"
        limit = ("--footprint-bytes-max", "20MiB")
        ran = tool.reshard("schedule", *limit, "--compare", fast, slow)
        self.assertEqual(ran.code, 1, ran.err)
        self.assertIn(f"{slow} ends first", ran.out)
        self.assertIn(f"{fast}: no order that was tried keeps the limits", ran.out)
        answer = json.loads(self.schedule("--json", *limit, "--compare", slow, fast))
        self.assertEqual((answer["first"], answer["certain"]), (0, False))
        self.assertIn("keeps the limits", answer["programs"][1]["error"])
        self.assertIn("keeps the limits", self.schedule("--footprint-bytes-max", "1MiB", "--compare", slow, fast, code=1))

    def test_bad_comparisons_are_named(self):
        for arguments, wanted in ((("refit",), "--compare: At least 2 required"),
                                  (("refit", "/nowhere"), "/nowhere: cannot read"),
                                  (("refit", "refit stages=2"), "refit stages=2: "),
                                  (("refit", "refit", "--svg"), "--compare prints one table"),
                                  (("refit", "refit", "--script", "0"), "--compare prints one table"),
                                  (("refit", "refit", "--generate", "refit"), "--compare prints one table")):
            self.assertIn(wanted, self.schedule("--compare", *arguments, code=2))

    def test_bad_lines_name_their_place(self):
        task = '{"task": "a", "mesh": "x=2", "seconds": 1'
        for text, wanted in ((task, "line 1: "),
                             ('\n[1]', "line 2: "),
                             ('{"tusk": "a"}', 'line 1: the line has no "task", "array" or "limit"'),
                             (task + ', "size": 3}', 'line 1: unknown field "size"'),
                             ('{"task": "a"}', 'line 1: "mesh" is missing'),
                             (task.replace("1", "-1") + "}", 'line 1: "seconds" must be from 0 to 200000 seconds'),
                             (task + ', "uses": {"y": 3}}', 'line 1: y: "y" must be a layout'),
                             (task + ', "uses": {"y": "f32[8@z]"}}', "line 1: y: "),
                             (task + ', "uses": {"y": "f32[8@x]"}}', "task a: it uses y, which nothing before it makes"),
                             (task + ', "donates": "y"}', 'line 1: "donates" must be a list of names'),
                             ('{"limit": 3, "mesh": "x=2", "kind": 1}', "line 1: a limit has only")):
            self.assertIn(wanted, self.schedule(text=text, code=2))
        self.assertIn("there are gpipe, 1f1b", self.schedule("--generate", "pipe", code=2))
        self.assertIn("it has buckets, trainer", self.schedule("--generate", "refit stages=2", code=2))
        self.assertIn("at least 1", self.schedule("--generate", "refit buckets=0", code=2))
        self.assertIn("takes a file of tasks", self.schedule(code=2))


if __name__ == "__main__":
    unittest.main()
