"""The planner of the page, in node, against the command line, byte by byte. ./dev docs makes it with emscripten."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent))

import tool  # noqa: E402

PLANNER = pathlib.Path(os.environ["RESHARD_PLANNER"])
PAGE = ROOT / "docs" / "site" / "static" / "planner_page.js"
SOURCES = ("include", "src", "synth", "report", "tool/browser", "tool/request", "tool/console", "tool/commands/explain",
           "files/formats")

COLLECTIVES = {"vocabulary": "collectives"}
# Fields as the form has them. The notation is recognized by the page and named to the tool.
QUESTIONS = [
    (None, {"mesh": "x=2,y=3", "source": "f32[12288@x,4096]", "target": "f32[12288@y,4096]", **COLLECTIVES}),
    (None, {"mesh": "x=2,y=3", "source": "f32[12288@x,4096]", "target": "f32[12288@y,4096]"}),
    (None, {"mesh": "x=8", "source": "bf16[8192@x,4096]", "target": "bf16[8192,4096@x]"}),
    (None, {"mesh": "x=8", "source": "bf16[8192@x,4096]", "target": "bf16[8192,4096@x]", "objective": "steps"}),
    (None, {"mesh": "n=2,x=8", "source": "bf16[8192@(n,x),4096]", "target": "bf16[8192,4096@(n,x)]",
            "machine": "dgx-h100:nodes=2"}),
    (None, {"mesh": "x=4,y=8", "source": "f32[65536@(x,y),4096]", "target": "f32[65536,4096@x]", "machine": "dgx-h100:nodes=4"}),
    (None, {"mesh": "x=2,y=4", "source": "f32[1024,1024@x]", "target": "f32[1024@(x,y),1024]", **COLLECTIVES}),
    (None, {"mesh": "x=3,y=2", "source": "i8[7@x,5]", "target": "i8[7,5@y]"}),
    (None, {"mesh": "x=4", "source": "f32[64,64]{U:x}", "target": "f32[64@x,64]"}),
    (None, {"mesh": "x=4,y=2", "source": "f64[64@y]{U:x}", "target": "f64[64]", "objective": "bytes"}),
    (None, {"mesh": "x=6", "source": "f32[36@x]", "target": "f32[36@x:(2)3]"}),
    (None, {"mesh": "a=2,b=2,c=2", "source": "f16[8@a,8@b,8@c]", "target": "f16[8@c,8@a,8@b]", **COLLECTIVES}),
    (None, {"mesh": "x=4", "source": "f32[10@x[balanced]]", "target": "f32[10@x]"}),
    (None, {"mesh": "x=2", "source": "f32[8@x]", "target": "f32[8@x]"}),
    ("spec", {"mesh": "x=2,y=4", "array": "f32[16,8]", "source": "P('x', 'y')", "target": "P(None, ('x', 'y'))"}),
    ("sdy", {"array": "f32[16,8]", "source": '#sdy.sharding<mesh<["x"=2, "y"=4]>, [{"x"}, {"y"}]>',
             "target": '#sdy.sharding<mesh<["x"=2, "y"=4]>, [{}, {"x", "y"}]>'}),
    ("hlo", {"array": "bf16[64,32]", "source": "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
             "target": "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}),
    ("dtensor", {"mesh": "dp=2,tp=2", "array": "f32[64,32]", "source": "(Shard(0), Shard(1))", "target": "(Shard(1), Shard(0))"}),
    ("dtensor", {"mesh": "dp=2,tp=2", "array": "f32[6,4]", "source": "[Partial(), Replicate()]", "target": "[Replicate(), Shard(1)]"}),
    (None, {"mesh": "x=64,y=64", "source": "bf16[65536@x,65536@y]", "target": "bf16[65536@y,65536@x]"}),
]
WRONG = [
    "", "{", '{"mesh": "x=2", "source": "f32[8@z]", "target": "f32[8]"}', '{"mesh": "x=2", "source": "f32[8@x]"}',
    '{"mesh": "x=2", "source": "f32[8@x", "target": "f32[8]"}', '{"mesh": "x=2", "source": "f32[8]", "target": "f32[9]"}',
    '{"id": 5, "mesh": "x=2", "source": "f32[8@x]", "target": "f32[8]", "options": {"peak_bytes_max": "1"}}',
    '{"mesh": "x=2", "source": "f32[8@x]", "target": "f32[8]", "options": {"machine": "abacus"}}']
# Errors as PyTorch prints them, and the questions that they stand for.
DTENSOR = [
    ("RuntimeError: Sharding propagation failed for Op(op=aten.embedding.default, args_schema=Spec((Replicate(), Shard(dim=0)) on "
     "(2048, 256)), Spec((Shard(dim=0), Replicate()) on (16, 2048)) @ mesh: (2, 4))",
     ("--mesh", "d0=2,d1=4", "f32[2048@d1,256]", "f32[2048,256]")),
    ("Implicit redistribution occurred for Op(op=aten.add.Tensor, args_schema=Spec(S(0)R on (64, 32)), Spec(RS(1) on (64, 32)) "
     "@ mesh: (2, 2)) while ExplicitRedistributionContext was active",
     ("--mesh", "d0=2,d1=2", "f32[64@d0,32]", "f32[64,32@d1]")),
]
LOG = "\n".join((
    "W spmd_partitioner.cc:630] [SPMD] Involuntary full rematerialization. The compiler cannot go from sharding {devices=[8,1]<=[8]} "
    "to {devices=[1,8]<=[8]} efficiently for HLO operation %copy = f32[4096,4096]{1,0} copy(%p)",
    "step 2",
    "[SPMD] Involuntary full rematerialization. The compiler cannot go from sharding {mesh['x'=2,'y'=4], [{}, {'x'}, {'y'}]} to "
    "{mesh['x'=2,'y'=4], [{'x', 'y'}, {}, {}]} efficiently for HLO operation %c = f32[64,32,16]{2,1,0} copy(%d). As the last resort",
    "[spmd] Involuntary full rematerialization. The compiler was not able to go from sharding {devices=[256,1]<=[256]} to "
    "{devices=[1,64,4]<=[256] last_tile_dim_replicate} without doing a full rematerialization of the tensor."))


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def newest_source():
    return max(path.stat().st_mtime for folder in SOURCES for path in (ROOT / folder).rglob("*")
               if path.suffix in (".cpp", ".hpp", ".def"))


def ask(questions):
    """The answers of the page's planner, and their milliseconds."""
    given = "".join(json.dumps(one) + "\n" for one in questions)
    done = subprocess.run(["node", str(HERE / "ask.js"), str(PLANNER), str(PAGE)], input=given, capture_output=True, text=True,
                          timeout=tool.SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [json.loads(line["answer"]) for line in lines], [line["milliseconds"] for line in lines]


def arguments(notation, fields):
    """The same question on the command line."""
    named = {"notation": notation, "mesh": fields.get("mesh"), "array": fields.get("array"),
             **{name: fields.get(name) for name in ("vocabulary", "objective", "machine")}}
    return [*(word for name, value in named.items() if value for word in (f"--{name}", value)), fields["source"], fields["target"]]


class Planner(tool.Case):
    def test_every_answer_is_that_of_the_command_line(self):
        answers, milliseconds = ask([{"fields": fields} for _, fields in QUESTIONS])
        self.assertEqual(len(answers), len(QUESTIONS))
        for (notation, fields), answer in zip(QUESTIONS, answers):
            with self.subTest(fields):
                asked = arguments(notation, fields)
                self.assertEqual(answer["table"], self.ran_well(tool.reshard("plan", *asked)).out)
                plan = json.loads(self.ran_well(tool.reshard("plan", "--json", *asked)).out)
                del plan["synthesis_us"]
                self.assertEqual(json.dumps(answer["plan"]), json.dumps(plan))
                drawn = tool.reshard("draw", "--svg", *asked)
                self.assertEqual(drawn.code != 0, "picture" not in answer, drawn.err)
                if "picture" in answer:
                    self.assertEqual(answer["picture"], drawn.out)
        self.assertEqual(answers[0]["lines"]["jax"], "x = reshard.jax.reshard(x, P('y', None))")
        print("milliseconds of an answer: median %.1f, most %.1f" % (statistics.median(milliseconds), max(milliseconds)))

    def test_an_error_of_dtensor(self):
        answers, _ = ask([{"error": error} for error, _ in DTENSOR])
        for (error, asked), answer in zip(DTENSOR, answers):
            with self.subTest(error):
                self.assertNotIn("error", answer)
                self.assertEqual(answer["table"], self.ran_well(tool.reshard("plan", "--vocabulary", "collectives", *asked)).out)

    def test_errors_are_those_of_a_batch(self):
        answers, _ = ask([{"line": line} for line in WRONG])
        for line, answer in zip(WRONG, answers):
            with self.subTest(line):
                self.assertIn("error", answer)
                if line:  # a batch skips empty lines
                    batch = tool.reshard("plan", "--batch", stdin=line.encode() + b"\n")
                    self.assertEqual(json.dumps(answer), json.dumps(json.loads(batch.out)))

    def test_a_log(self):
        (answer,), _ = ask([{"log": LOG}])
        with open(self.path("train.log"), "w", encoding="utf-8") as file:
            file.write(LOG)
        explained = ("explain", "--log", self.path("train.log"))
        self.assertEqual(answer["text"], self.ran_well(tool.reshard(*explained)).out)
        self.assertEqual(answer["rows"], json.loads(self.ran_well(tool.reshard(*explained, "--json")).out)["rows"])
        self.assertEqual(len(answer["rows"]), 3)


if __name__ == "__main__":
    if shutil.which("node") is None:
        skip("no node here")
    if not PLANNER.is_file():
        skip("the planner of the page is not built; ./dev docs builds it where emscripten is")
    if PLANNER.stat().st_mtime < newest_source():
        skip("the planner of the page is older than its sources; run ./dev docs")
    tool.main()
