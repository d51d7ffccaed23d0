"""The tables as they are printed. Times depend on the cost model, so they are masked.

RESHARD_UPDATE=1 writes the files again; check the difference before you accept it.
"""

import json
import os
import re
import subprocess
import xml.etree.ElementTree

import tool

TWO_BY_THREE = ("--mesh", "x=2,y=3", "f32[12288@x,4096]", "f32[12288@y,4096]")


def masked(text):
    """Masks times, counts of states and fingerprints, which change with the cost model."""
    text = re.sub(r"\d+(\.\d+)? (ns|us|ms|s)\b", "<time>", text)
    text = re.sub(r"\d+ states, .*?   ", "<states>   ", text)
    text = re.sub(r"#[0-9a-f]{16}", "#<plan>", text)
    return re.sub(r" +", " ", text)


class Tables(tool.Case):
    def golden(self, name, *arguments):
        text = self.ran_well(tool.reshard(*arguments)).out
        if arguments[0] == "plan":
            text = masked(text)
        self.written_in(os.path.join(tool.HERE, "golden", name + ".txt"), text)

    def written_in(self, path, text):
        if os.environ.get("RESHARD_UPDATE"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(text, file.read())

    def test_plan(self):
        self.golden("plan", "plan", *TWO_BY_THREE)

    def test_plan_of_collectives(self):
        self.golden("plan_collectives", "plan", *TWO_BY_THREE, "--vocabulary", "collectives")

    def test_plan_with_a_donated_source(self):
        self.golden("plan_donated", "plan", *TWO_BY_THREE, "--vocabulary", "collectives", "--donate")

    def test_plan_of_nothing(self):
        self.golden("plan_nothing", "plan", "--mesh", "x=2", "f32[4@x]", "f32[4@x]")

    def test_plan_of_sums(self):
        self.golden("plan_sums", "plan", "--mesh", "x=2,y=2", "f32[8@x,8]{U:y}", "f32[8@(x,y),8]")

    def test_plan_of_sub_axes(self):
        self.golden("plan_sub_axes", "plan", "--mesh", "x=4,y=2", "f32[4@x,4@y]", "f32[4@y,4@x]", "--vocabulary",
                    "collectives")

    def test_emit(self):
        """One wide all_to_all, and a sum with sub-axes on the way, like a person's plan."""
        wide = ("--mesh", "x=2,y=4", "f32[1024,8@x,1024@y]", "f32[1024@(x,y),8,1024]")
        sums = ("--mesh", "x=2,y=4", "bf16[16,8@y:(2)2]{avg:x}", "bf16[16@y:(1)2,8@x]")
        for to in ("jax", "stablehlo", "torch"):
            self.golden("emit_" + to, "emit", "--to", to, *wide)
            self.golden("emit_sums_" + to, "emit", "--to", to, *sums)
        typed = self.ran_well(tool.reshard("emit", "--to", "spmd_types", "--mesh", "dp=2,tp=4", "f32[64@(dp,tp),32]", "f32[64,32]"))
        lines = [line.strip() for line in typed.out.splitlines() if "redistribute(" in line]
        self.assertEqual(lines, [f'tile = spmd.redistribute(tile, mesh.get_group("{axis}"), src=spmd.S(0), dst=spmd.R)'
                                 for axis in ("tp", "dp")])

    def test_emit_says_what_it_cannot_write(self):
        for said, arguments in (
            ("--to: 'tpu' is no framework", ("--to", "tpu", "--mesh", "x=2", "f32[4@x]", "f32[4]")),
            ("--to is required", ("--mesh", "x=2", "f32[4@x]", "f32[4]")),
            ("sizes do not divide: dimension 0 of f32[4@x] has 4 indices for 3 shards",
             ("--to", "jax", "--mesh", "x=3", "f32[4@x]", "f32[4]")),
            ("dimension 0 of f32[60@x/8,512] is cut block-cyclically, in blocks of 8; a tile program needs tiles of one "
             "shape",
             ("--to", "jax", "--mesh", "x=4", "f32[60@x,512]", "f32[60@x/8,512]")),
            ("dimension 1 of f32[4,6@x[1,5]] is cut into stated shares, [1,5]",
             ("--to", "stablehlo", "--mesh", "x=2", "f32[4@x,6]", "f32[4,6@x[1,5]]")),
            ("the source stands on mesh x=4 and the target on mesh x=2; a tile program needs the same devices",
             ("--to", "jax", "--mesh", "x=4", "--target-mesh", "x=2", "f32[4@x]", "f32[4@x]")),
            ("step 2 (exchange to f32[6@y]): an exchange",
             ("--to", "jax", "--vocabulary", "all", "--mesh", "x=2,y=3", "f32[6@x]", "f32[6@y]")),
            ("an exchange is no operation that every framework has",
             ("--to", "jax", "--vocabulary", "all", "--mesh", "x=2,y=3", "f32[6@x]", "f32[6@y]")),
            ("step 1 of the plan (permute) is no typed collective, which changes one whole mesh axis",
             ("--to", "spmd_types", "--mesh", "x=2,y=2", "f32[64@x,32@y]", "f32[64@y,32@x]")),
            ("step 1 of the plan (all_to_all) is no typed collective, which changes one whole mesh axis: it changes 2 mesh axes",
             ("--to", "spmd_types", "--mesh", "x=2,y=4", "f32[64@(x,y),32]", "f32[64,32@(x,y)]")),
            ("(all_gather) is no typed collective, which changes one whole mesh axis: it cuts a dimension by a part of a mesh axis",
             ("--to", "spmd_types", "--mesh", "x=4", "f32[64@x:(1)2,32]", "f32[64,32]")),
            ("typed collectives only add",
             ("--to", "spmd_types", "--mesh", "x=2", "f32[64,32]{max:x}", "f32[64,32@x]")),
            ("typed collectives do not reshape", ("--to", "spmd_types", "--mesh", "x=4", "f32[8,8@x]", "f32[64@x]")),
            ("one mesh at both ends, whose devices are in order",
             ("--to", "spmd_types", "--mesh", "x=4[2,0,3,1]", "f32[8@x]", "f32[8]")),
            ("list the devices in different orders",
             ("--to", "jax", "--mesh", "x=4", "--target-mesh", "x=4[2,0,3,1]", "f32[4@x]", "f32[4@x]")),
        ):
            result = tool.reshard("emit", *arguments)
            self.assertEqual(result.code, 2, result)
            self.assertIn(said, result.err)
            self.assertEqual(result.out, "")
            if "do not divide" not in said:
                self.assertNotIn("do not divide", result.err)
        zigzag = tool.reshard("emit", "--to", "torch", "--mesh", "cp=2", "f32[16@cp[4:0,8:1,12:1,16:0],8]", "f32[16@cp,8]")
        self.assertEqual(zigzag.code, 1, zigzag)
        self.assertIn("no sequence of collectives keeps the peak at the floor of 256 B: dimension 0 of "
                      "f32[16@cp[4:0,12:1,16:0],8] is cut at stated indices", zigzag.err)

    def test_a_reshape_that_looks_like_a_transposition_is_named(self):
        note = "reshard: note: f32[128,256@x] to f32[256,128@x] is read as a reshape"
        turned = ("--mesh", "x=4", "f32[128,256@x]", "f32[256,128@x]")
        for command in ("plan", "explain", "draw"):
            self.assertIn(note, self.ran_well(tool.reshard(command, *turned)).err)
        said = json.loads(self.ran_well(tool.reshard("plan", *turned, "--json")).out)
        self.assertIn("not as a transposition", said["note"])
        # The same shape, other extents, and a row that becomes a column: no text can be misread.
        for ends in (("f32[128,128@x]", "f32[128@x,128]"), ("f32[128,256@x]", "f32[64,512@x]"),
                     ("f32[1,256@x]", "f32[256@x,1]")):
            result = self.ran_well(tool.reshard("plan", "--mesh", "x=4", *ends))
            self.assertEqual(result.err, "")
            self.assertNotIn("note", json.loads(tool.reshard("plan", "--mesh", "x=4", *ends, "--json").out))

    def test_draw(self):
        self.golden("draw", "draw", "--mesh", "x=2,y=3", "f32[6@x]", "f32[6@y]", "--vocabulary", "collectives")

    def test_draw_matrix(self):
        self.golden("draw_matrix", "draw", "--mesh", "x=2,y=2", "f32[4@x,4@y]", "f32[4,4@(y,x)]")

    def test_draw_ranges(self):
        self.golden("draw_ranges", "draw", "--mesh", "x=2,y=2", "f32[400@x,40]", "f32[400,40@y]")

    def test_draw_many_devices(self):
        self.golden("draw_many", "draw", "--mesh", "x=30,y=1000", "f32[30@x,1000]", "f32[30@x,1000]")

    def test_draw_uneven(self):
        self.golden("draw_uneven", "draw", "--mesh", "x=4", "f32[5@x]", "f32[5@x]")

    def test_draw_scalar_and_empty(self):
        self.golden("draw_scalar", "draw", "--mesh", "x=2", "f32[]", "f32[]")
        self.golden("draw_empty", "draw", "--mesh", "x=2", "f32[0@x]", "f32[0]")

    def test_columns_are_aligned(self):
        table = self.ran_well(tool.reshard("plan", *TWO_BY_THREE, "--vocabulary", "collectives")).out.splitlines()[:5]
        for title in (" layout", " tile", " received", " estimate"):
            left = title == " layout"
            at = table[0].index(title) + (0 if left else len(title) - 1)
            for line in table[2:]:
                before, here, after = line[at], line[at + 1 : at + 2], line[at + 1 : at + 2]
                self.assertTrue(before == " " and here not in ("", " ") if left else before != " " and after in ("", " "),
                                "%r in %r" % (title, line))

    def test_explain_names_every_candidate_and_why(self):
        ran = self.ran_well(tool.reshard("explain", *TWO_BY_THREE))
        self.assertIn("gather_then_slice", ran.out)
        self.assertIn("chosen", ran.out)
        self.assertTrue(all(len(line) <= 120 for line in ran.out.splitlines()), ran.out)
        told = json.loads(self.ran_well(tool.reshard("explain", *TWO_BY_THREE, "--json")).out)
        self.assertEqual(told["policy_row"], "one_mesh")
        self.assertIn("\npolicy row one_mesh: both ends are written in the digits of one mesh\n", ran.out)
        self.assertEqual(told["alternatives"][0]["lost"], "")
        self.assertTrue(all(other["lost"] for other in told["alternatives"][1:]))
        self.assertTrue(all(other["rule"] in ran.out for other in told["alternatives"]))

    def test_explain_counts_the_rules_that_were_asked(self):
        """A rule that is off is not asked. Times differ from run to run, and are printed only on request."""
        ran = self.ran_well(tool.reshard("explain", *TWO_BY_THREE, "--disabled-rules", "search,three_stage_deep"))
        rules = ran.out[ran.out.index("\n rule                candidates"):]
        self.assertEqual([line.split()[:3] for line in rules.splitlines()[2:]],
                         [["one_step", "0", "0"], ["direct_exchange", "1", "1"], ["three_stage", "1", "1"],
                          ["three_stage_inside", "0", "0"], ["fetch_once", "1", "0"], ["gather_then_slice", "1", "0"]])
        self.assertEqual(self.ran_well(tool.reshard("explain", *TWO_BY_THREE, "--disabled-rules", "search", "--disabled-rules",
                                                    "three_stage_deep")).out, ran.out)
        told = json.loads(self.ran_well(tool.reshard("explain", *TWO_BY_THREE, "--disabled-rules", "search", "--json")).out)
        self.assertEqual(told["rules"][1], {"rule": "direct_exchange", "candidates": 1, "kept": 1})
        self.assertFalse(told["search_complete"])
        self.assertNotIn("search", [one["rule"] for one in told["rules"] + told["alternatives"]])
        timed = json.loads(self.ran_well(tool.reshard("explain", *TWO_BY_THREE, "--times", "--json")).out)
        self.assertTrue(all(rule["nanoseconds"] > 0 for rule in timed["rules"]), timed["rules"])
        self.assertRegex(self.ran_well(tool.reshard("explain", *TWO_BY_THREE, "--times")).out,
                         r"search +1 +1 +[0-9.]+ (ns|us|ms) ")
        self.assertNotEqual(self.ran_well(tool.reshard("plan", *TWO_BY_THREE, "--disabled-rules", "search")).out,
                            self.ran_well(tool.reshard("plan", *TWO_BY_THREE)).out)

    def test_pictures_of_the_pages(self):
        pictures = {"steps": ("draw", *TWO_BY_THREE, "--vocabulary", "collectives"),
                    "levels": ("draw", "--mesh", "n=2,x=2", "f32[4096@(n,x),4096]", "f32[4096,4096@n]", "--machine",
                               "ethernet:nodes=2,per_node=2", "--vocabulary", "collectives"),
                    "halos": ("draw", "--mesh", "x=2,y=2", "f64[16@x,16@y]", "f64[16@x~2,16@y~1%]"),
                    "lanes": ("schedule", "--generate", "1f1b stages=3 microbatches=5 move=9ms")}
        for name, arguments in pictures.items():
            with self.subTest(name):
                text = self.ran_well(tool.reshard(*arguments, "--svg")).out
                xml.etree.ElementTree.fromstring(text)
                self.written_in(os.path.join(tool.HERE, "..", "..", "docs", "pictures", name + ".svg"), text)

    def test_svg_is_xml_with_a_mark_for_every_device(self):
        ran = self.ran_well(tool.reshard("draw", "--svg", "--mesh", "x=2,y=3", "f32[6@x]", "f32[6@y]"))
        root = xml.etree.ElementTree.fromstring(ran.out)
        groups = root.findall("{http://www.w3.org/2000/svg}g")
        self.assertEqual(len(groups) % 6, 0)
        self.assertGreaterEqual(len(groups), 12)

    def test_draw_json(self):
        ran = self.ran_well(tool.reshard("draw", "--json", "--mesh", "x=2", "f32[5@x]", "f32[5]"))
        stages = json.loads(ran.out)["stages"]
        self.assertEqual([t["tile"] for t in stages[0]["tiles"]], [[[0, 3]], [[3, 5]]])
        self.assertEqual([t["tile"] for t in stages[-1]["tiles"]], [[[0, 5]], [[0, 5]]])

    def test_run_report(self):
        ran = self.ran_well(tool.reshard("run", "--mesh", "x=2,y=3", "f32[120@x,40]", "f32[120@y,40]"))
        self.assertRegex(ran.out, r"^ok   6 ranks   local   wrong 0 of 9600\n")
        self.assertRegex(ran.out, r"predicted +measured")
        self.assertIn("a rank accounts for ", ran.out)
        told = json.loads(self.ran_well(
            tool.reshard("run", "--json", "--mesh", "x=2,y=3", "f32[120@x,40]", "f32[120@y,40]")).out)
        self.assertEqual((told["wrong"], told["elements_verified"], told["ranks"]), (0, 9600, 6))

    def test_a_donated_source_saves_the_workspace(self):
        """Donation shows in the plan's footprint and in the run's memory. A donated array cannot be written or moved again."""
        problem = ("--mesh", "x=2,y=3", "f32[120@x,40]", "f32[120@y,40]", "--vocabulary", "collectives")
        ends = (60 + 40) * 40 * 4
        for more, workspace in (((), 20 * 40 * 4), (("--donate",), 0)):
            planned = json.loads(self.ran_well(tool.reshard("plan", "--json", *problem, *more)).out)
            self.assertEqual(planned["footprint_bytes"], ends + workspace)
            self.assertIs(planned["donate"], bool(more))
            told = json.loads(self.ran_well(tool.reshard("run", "--backend", "local", "--json", *problem, *more)).out)
            self.assertEqual((told["wrong"], told["elements_verified"]), (0, 9600))
            self.assertEqual(told["workspace_bytes"], workspace)
            self.assertEqual(told["accounted_bytes"], ends + workspace)
        for arguments in (("run", "--tiles", "tiles"), ("bench",)):
            refused = tool.reshard(*arguments, "--donate", *problem)
            self.assertEqual((refused.code, refused.out), (2, ""))
            self.assertRegex(refused.err, "donate")

    def test_bench_report(self):
        ran = self.ran_well(tool.reshard("bench", "--rounds", "2", "--mesh", "x=4", "f32[64@x,64]", "f32[64,64@x]"))
        self.assertIn("this plan", ran.out)
        self.assertIn("gather, then slice", ran.out)
        self.assertIn("2 timed rounds", ran.out)
        told = json.loads(self.ran_well(tool.reshard("bench", "--json", "--rounds", "2", "--mesh", "x=4",
                                                     "f32[64@x,64]", "f32[64,64@x]")).out)
        for one in told["contestants"]:
            self.assertEqual(one["wrong"], 0)
            self.assertEqual(len(one["seconds"]), 2)
            self.assertEqual(one["elements_verified"], 4 * 64 * 64)

    def test_help_and_version(self):
        for arguments in (["--help"], ["plan", "--help"], ["--version"]):
            ran = self.ran_well(tool.reshard(*arguments))
            self.assertIn("reshard", ran.out)
            self.assertEqual(ran.err, "")

    def test_help_of_each_subcommand_has_examples_that_run(self):
        listed = self.ran_well(tool.reshard("--help")).out.partition("Subcommands:\n")[2].partition("\n\n")[0]
        commands = [line.split()[0] for line in listed.splitlines()]
        self.assertGreaterEqual(len(commands), 7)
        os.symlink(tool.TOOL, self.path("reshard"))
        environment = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}")
        for command in commands:
            told = self.ran_well(tool.reshard(command, "--help")).out
            self.assertRegex(told, r"Exit codes:\n  0  done\n  1  .*\n  2  .*\n  3  ")
            examples = told.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
            self.assertTrue(any(f"reshard {command} " in line for line in examples), told)
            for example in examples:
                if "mpirun" in example and not tool.MPIEXEC:
                    continue
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", example.replace("mpirun", tool.MPIEXEC)],
                                      cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, example + done.stderr)


if __name__ == "__main__":
    tool.main()
