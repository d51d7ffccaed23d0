"""`plan --certify`: the lines for the checker, the use of its answer, and the error if it is missing.

The checkers in this test are scripts with fixed answers. The proved checker is used too if it was built."""

import json
import os
import unittest

import tool

QUESTION = ("plan", "--mesh", "x=2,y=3", "f32[12288@x,4096]", "f32[12288@y,4096]", "--certify")
ASKED = ("(check (mesh 2 3) (shape 12288 4096) (source ((0) ()) ()) (target ((1) ()) ()) "
         "(plan (slice ((0 1) ()) ()) (exchange ((1) ()) ())))")
BUILT = os.environ.get("RESHARD_BUILT_CHECKER", "")


class Certify(tool.Case):
    def setUp(self):
        super().setUp()
        os.environ.pop("RESHARD_CHECKER", None)

    def checker(self, answer, name="checker"):
        """A checker that records its input and gives this answer."""
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nread -r line\necho \"$line\" > '{self.path('asked')}'\necho '{answer}'\n")
        os.chmod(path, 0o755)
        return path

    def ask(self, answer, *arguments):
        return tool.reshard(*QUESTION, "--checker", self.checker(answer), *arguments)

    def refused(self, ran, code, *words):
        self.assertEqual(ran.code, code, ran.err + ran.out)
        self.assertEqual(ran.out, "")
        for word in words:
            self.assertIn(word, ran.err)

    def test_an_optimal_plan(self):
        ran = self.ran_well(self.ask("accept peak=25165824 received=16777216 lower_bound=16777216 optimal"))
        self.assertIn("\ncertified: proved optimal   peak 96.0 MiB   received at most 64.0 MiB a device\n", ran.out)
        with open(self.path("asked"), encoding="utf-8") as file:
            self.assertEqual(file.read().strip(), ASKED)

    def test_a_limit_is_asked_in_elements(self):
        self.ran_well(self.ask("accept peak=25165824 received=16777216 lower_bound=16777216 optimal",
                               "--peak-bytes-max", "96MiB"))
        with open(self.path("asked"), encoding="utf-8") as file:
            self.assertIn("(bound 25165824)", file.read())

    def test_within_a_factor(self):
        ran = self.ran_well(self.ask("accept peak=25165824 received=16777216 lower_bound=16777216 within 1.000"))
        self.assertIn("certified: proved within 1.000 of the bound", ran.out)

    def test_json(self):
        ran = self.ran_well(self.ask("accept peak=25165824 received=16777216 lower_bound=16777216 optimal", "--json"))
        self.assertEqual(json.loads(ran.out)["certified"],
                         {"claim": "proved optimal", "peak_bytes": 100663296, "received_bytes": 67108864,
                          "lower_bound_bytes": 67108864})

    def test_a_rejected_plan_is_an_error(self):
        self.refused(self.ask("reject: step 2 is not typed"), 1, "the proved checker", "step 2 is not typed")

    def test_other_figures_are_an_error(self):
        for answer in ("accept peak=1 received=16777216 lower_bound=16777216 optimal",
                       "accept peak=25165824 received=1 lower_bound=16777216 optimal",
                       "accept peak=25165824 received=16777216 lower_bound=1 optimal"):
            self.refused(self.ask(answer), 1, "other figures")

    def test_no_answer(self):
        for answer in ("", "accept", "accept peak=x received=y", "hello"):
            self.refused(self.ask(answer), 3, "did not answer")
        self.refused(tool.reshard(*QUESTION, "--checker", "/bin/false"), 3, "did not answer")

    def test_no_checker(self):
        self.refused(tool.reshard(*QUESTION, "--checker", self.path("nowhere")), 3, "there is no checker at")
        os.environ["RESHARD_CHECKER"] = self.path("nowhere")
        self.refused(tool.reshard(*QUESTION), 3, "there is no checker at")

    def test_an_error_in_json(self):
        ran = tool.reshard(*QUESTION, "--json", "--checker", self.path("nowhere"))
        self.assertEqual(ran.code, 3)
        self.assertEqual(json.loads(ran.out)["error"]["code"], "backend")

    def test_found_by_the_environment_and_on_path(self):
        answer = "accept peak=25165824 received=16777216 lower_bound=16777216 optimal"
        os.environ["RESHARD_CHECKER"] = self.checker(answer)
        self.ran_well(tool.reshard(*QUESTION))
        del os.environ["RESHARD_CHECKER"]
        self.checker(answer, "reshard-checker")
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = "/nowhere::" + self.folder + ":" + path
        self.ran_well(tool.reshard(*QUESTION))

    def test_wrong_use(self):
        self.refused(tool.reshard(*QUESTION[:-1], "--checker", "/bin/true"), 2, "--certify")
        self.refused(tool.reshard("plan", "--batch", "--certify"), 2, "--batch")

    def test_digits_without_a_common_refinement(self):
        self.refused(tool.reshard("plan", "--mesh", "x=6", "f32[12@x:(1)2]", "f32[12@x:(1)3]", "--certify",
                                  "--checker", self.checker("accept")), 2, "no common refinement")

    @unittest.skipUnless(os.path.exists(BUILT), "this build has no checker")
    def test_the_proved_one(self):
        for arguments, claim in (((), "proved optimal"),
                                 (("--vocabulary", "collectives", "--objective", "bytes"), "proved ")):
            ran = self.ran_well(tool.reshard(*QUESTION, "--checker", BUILT, *arguments))
            self.assertIn("certified: " + claim, ran.out)

    @unittest.skipUnless(os.path.exists(BUILT), "this build has no checker")
    def test_the_proved_one_between_meshes(self):
        ran = self.ran_well(tool.reshard("plan", "--mesh", "a=4", "--target-mesh", "c=4[4-7]", "f32[4096@a,64]",
                                         "f32[4096,64@c]", "--certify", "--checker", BUILT))
        self.assertIn("certified: proved optimal   peak 256.0 KiB   received at most 256.0 KiB a device", ran.out)

    @unittest.skipUnless(os.path.exists(BUILT), "this build has no checker")
    def test_the_proved_one_of_halos(self):
        halo = ("plan", "--mesh", "x=4,y=4", "f64[64@x,64@y]", "f64[64@x~1%,64@y~1%]", "--certify", "--checker")
        ran = self.ran_well(tool.reshard(*halo, BUILT))
        self.assertIn("certified: proved optimal   received at most 544 B a device", ran.out)
        self.refused(tool.reshard(*halo, self.checker("accept received=67 optimal")), 1, "the plan says 544 B")
        with open(self.path("asked"), encoding="utf-8") as file:
            self.assertIn("(boxes (shape 64 64) copies (ranks (rank (owns ((0 16) (0 16))) (wants ((63 81) (63 81)))",
                          file.read())
        self.refused(tool.reshard(*halo, BUILT, "--machine", "ethernet:nodes=4,per_node=4"), 2,
                     "dimension by dimension")


if __name__ == "__main__":
    tool.main()
