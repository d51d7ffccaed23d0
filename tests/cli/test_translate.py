"""Layouts in other notations: translated, planned, moved, and used in problem lines."""

import json

import tool

SPEC = ("--array", "f32[16,8]", "--mesh", "x=2,y=4")


class Translate(tool.Case):
    def translated(self, *arguments):
        return self.ran_well(tool.reshard("translate", *arguments)).out

    def test_every_notation_to_every_other(self):
        texts = {
            "jax": "f32[16@x,8@y]",
            "spec": "P('x', 'y')",
            "sdy": '#sdy.sharding<mesh<["x"=2, "y"=4]>, [{"x"}, {"y"}]>',
            "hlo": "{devices=[2,4]<=[8]}",
            "dtensor": "(Shard(dim=0), Shard(dim=1))",
        }
        for source, text in texts.items():
            for target, wanted in texts.items():
                with self.subTest(source + " to " + target):
                    out = self.translated("--from", source, "--to", target, *SPEC, text)
                    mesh = "" if target in ("sdy", "hlo") else "mesh x=2,y=4\n"
                    self.assertEqual(out, mesh + wanted + "\n")

    def test_as_json(self):
        out = self.translated("--from", "hlo", "--json", "--array", "i8[4]", "{devices=[2]1,0}")
        self.assertEqual(json.loads(out), {"notation": "jax", "mesh": "x=2[1,0]", "layout": "i8[4@x]"})

    def test_what_cannot_be_said_is_named(self):
        ran = tool.reshard("translate", "--to", "spec", "--mesh", "x=4", "f32[8@x:(2)2]")
        self.assertEqual(ran.code, 2)
        self.assertIn("a PartitionSpec cannot say a part of an axis, x:(2)2", ran.err)

    def test_the_caret_stands_under_the_first_wrong_place(self):
        ran = tool.reshard("translate", "--from", "hlo", "--array", "f32[8]", "{devices=[2]<=[3]}")
        self.assertEqual(ran.code, 2)
        self.assertIn("  {devices=[2]<=[3]}\n              ^\n", ran.err)

    def test_what_the_notation_leaves_open_is_asked_for(self):
        for arguments, words in ((("--from", "hlo", "{replicated}"), "--array"),
                                 (("--from", "hlo", "--array", "f32[8]", "{replicated}"), "over how many devices"),
                                 (("--from", "latin", "x"), "not a notation")):
            ran = tool.reshard("translate", *arguments)
            self.assertEqual(ran.code, 2, ran.err)
            self.assertIn(words, ran.err)

    def test_plan_explain_and_run_read_them(self):
        question = ("--notation", "hlo", "--array", "f32[16,8]", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
                    "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}")
        self.assertIn("f32[16@x,8]", self.ran_well(tool.reshard("plan", *question)).out)
        self.ran_well(tool.reshard("explain", *question))
        self.assertIn("wrong 0", self.ran_well(tool.reshard("run", "--backend", "local", *question)).out)

    def test_problem_lines(self):
        lines = [
            {"id": 1, "notation": "hlo", "array": "bf16[8,8]", "mesh": "4", "source": "{devices=[4,1]<=[4]}",
             "target": "{replicated}"},
            {"id": 2, "notation": "placements", "mesh": "(2,2)", "array": "f32[5,3]", "source": "[S(0), S(0)]",
             "target": "[R, R]", "options": {"objective": "bytes"}},
            {"id": 3, "notation": "dtensor", "mesh": "(2,2)", "array": "f32[4]", "source": "S(0), R", "target": "R, R"},
            {"id": 4, "mesh": "x=2,y=2", "source": "f32[4]{max:x}", "target": "f32[4@x]"},
            {"id": 5, "notation": "hlo", "array": "f32[24]", "target_array": "f32[6,4]", "mesh": "4",
             "source": "{devices=[4]<=[4]}", "target": "{devices=[4,1]<=[4]}"},
        ]
        ran = tool.reshard("plan", "--batch", stdin="\n".join(map(json.dumps, lines)).encode())
        answers = [json.loads(line) for line in ran.out.splitlines()]
        self.assertEqual([answer["id"] for answer in answers], [1, 2, 3, 4, 5])
        self.assertEqual(answers[0]["source"], "bf16[8@d0,8]")
        self.assertEqual(answers[1]["source"], "f32[5@(d0,d1)[balanced],3]")
        self.assertEqual(answers[1]["objective"], "bytes")
        self.assertEqual(answers[2]["steps"][0]["kind"], "all_gather")
        self.assertEqual(answers[3]["source"], "f32[4]{max:x}")
        self.assertEqual([step["kind"] for step in answers[4]["steps"]], ["exchange"])  # 6 rows of 4 over 4, not 24 over 4


if __name__ == "__main__":
    tool.main()
