"""`plan --batch`: one answer per line, in order. A bad line gets an error line, and the other lines still get answers."""

import json
import os
import signal
import subprocess
import tempfile

import tool

FIELDS = ["schema", "id", "mesh", "source", "target", "target_mesh", "objective", "vocabulary", "machine", "steps",
          "peak_bytes", "floor_bytes", "footprint_bytes", "received_bytes", "received_bytes_max_device",
          "sent_bytes_max_device", "lower_bound_bytes", "optimal", "search_complete", "seconds_estimate", "states",
          "synthesis_us", "checked"]
STEP_FIELDS = ["kind", "layout", "tile_bytes", "received_bytes", "sent_bytes", "group_size"]


def problem(**fields):
    return dict({"mesh": "x=2,y=3", "source": "f32[12@x,6]", "target": "f32[12@y,6]"}, **fields)


def lines(*problems):
    return "".join((p if isinstance(p, str) else json.dumps(p)) + "\n" for p in problems).encode()


class Batch(tool.Case):
    def answers(self, *problems, code=0):
        ran = tool.reshard("plan", "--batch", stdin=lines(*problems))
        self.assertEqual(ran.code, code, ran.err)
        return [json.loads(line) for line in ran.out.splitlines()]

    def test_fields_and_their_types(self):
        (answer,) = self.answers(problem(id="a"))
        for field in FIELDS:
            self.assertIn(field, answer)
        self.assertEqual(answer["schema"], 1)
        self.assertIs(answer["checked"], True)
        for field in FIELDS:
            if field.endswith(("_bytes", "_max_device", "_us")) or field == "states":
                self.assertIs(type(answer[field]), int, field)
        for step in answer["steps"]:
            self.assertEqual([f for f in STEP_FIELDS if f in step], STEP_FIELDS)
        self.assertEqual(answer["floor_bytes"], 12 * 6 * 4 // 2)
        self.assertEqual(answer["optimal"], answer["received_bytes_max_device"] == answer["lower_bound_bytes"])

    def test_order_and_ids(self):
        ids = ["a", 7, None, -1, 2**63, 0.5, True, "ä\n"]
        answers = self.answers(*[problem(id=i) for i in ids], problem())
        self.assertEqual([a["id"] for a in answers], [*ids, None])

    def test_a_bad_line_and_the_rest(self):
        answers = self.answers(problem(id=1), "{\"id\": 2, ", problem(id=3, source="f32[12@z,6]"), problem(id=4), code=1)
        self.assertEqual([a["id"] for a in answers], [1, 2, 3, 4])
        self.assertEqual(["error" in a for a in answers], [False, True, True, False])
        self.assertEqual(answers[1]["error"]["code"], "syntax")
        self.assertEqual(answers[2]["error"]["code"], "layout")
        self.assertIn("no axis z", answers[2]["error"]["message"])
        self.assertEqual(answers[2]["error"]["text"][answers[2]["error"]["offset"]], "z")

    def test_infeasible_is_its_own_code(self):
        (answer,) = self.answers(problem(id=1, options={"peak_bytes_max": "16 B"}), code=1)
        self.assertIn(answer["error"]["code"], ("infeasible", "syntax"))
        (answer,) = self.answers(problem(id=1, options={"peak_bytes_max": 16}), code=1)
        self.assertEqual(answer["error"]["code"], "infeasible")
        self.assertIn("144 B", answer["error"]["message"])

    def test_options(self):
        options = {"vocabulary": "collectives", "objective": "bytes", "peak_bytes_max": "1MiB",
                   "footprint_bytes_max": 1048576, "donate": False}
        (answer,) = self.answers(problem(options=options))
        self.assertEqual((answer["vocabulary"], answer["objective"]), ("collectives", "bytes"))
        self.assertNotIn("exchange", [step["kind"] for step in answer["steps"]])

    def test_rules_that_are_not_asked(self):
        options = {"vocabulary": "collectives"}
        with_search, without = self.answers(problem(options=options),
                                            problem(options={**options, "disabled_rules": ["search", "three_stage"]}))
        self.assertNotIn(without["rule"], ("search", "three_stage"))
        (again,) = self.answers(problem(options={**options, "disabled_rules": []}))
        self.assertEqual(again["rule"], with_search["rule"])

    def test_target_mesh(self):
        (answer,) = self.answers(problem(target="f32[12@z,6]", target_mesh="z=6"))
        self.assertEqual(answer["target_mesh"], "z=6")
        self.assertEqual(answer["steps"][-1]["layout"].replace("(x,y)", "z"), "f32[12@z,6]")

    def test_an_empty_target_mesh_is_one_device(self):
        (answer,) = self.answers(problem(target="f32[12,6]", target_mesh=""))
        self.assertEqual(answer["target_mesh"], "")
        ran = tool.reshard("plan", "--json", "--mesh", "x=2,y=3", "--target-mesh", "", "f32[12@x,6]", "f32[12,6]")
        self.assertEqual(json.loads(self.ran_well(ran).out)["fingerprint"], answer["fingerprint"])

    def test_an_answer_line_is_a_command_too(self):
        (answer,) = self.answers(problem())
        ran = tool.reshard("plan", "--json", "--mesh", answer["mesh"], answer["source"], answer["target"])
        again = json.loads(self.ran_well(ran).out)
        answer.pop("synthesis_us")
        again.pop("synthesis_us")
        self.assertEqual(again, answer)

    def test_blank_lines_and_no_lines(self):
        self.assertEqual(self.answers(), [])
        self.assertEqual(len(self.answers("", problem(), "  ", "\r")), 1)

    def test_the_last_line_needs_no_end(self):
        ran = tool.reshard("plan", "--batch", stdin=json.dumps(problem()).encode())
        self.assertEqual(len(self.ran_well(ran).out.splitlines()), 1)

    def test_what_stands_behind_the_problem_is_looked_at(self):
        for garbage in (" garbage", "{}", "}", "\0", "\0garbage", " \0"):
            with self.subTest(repr(garbage)):
                answer, after = self.answers(json.dumps(problem(id=7)) + garbage, problem(id="next"), code=1)
                self.assertEqual(answer["error"]["code"], "syntax")
                self.assertIn("not JSON", answer["error"]["message"])
                self.assertEqual(after["id"], "next")
                if "\0" in garbage:
                    self.assertEqual(answer["id"], 7)
                    self.assertRegex(answer["error"]["message"], r"at byte \d+: a NUL")

    def test_windows_line_ends(self):
        ran = tool.reshard("plan", "--batch", stdin=json.dumps(problem()).encode() + b"\r\n")
        self.assertEqual(len(self.ran_well(ran).out.splitlines()), 1)

    def test_the_same_on_every_run(self):
        many = [problem(id=i, source=s, target=t) for i, (s, t) in enumerate(
            [("f32[12@x,6]", "f32[12,6@y]"), ("f32[12@(x,y),6]", "f32[12,6@(y,x)]"), ("i8[7@x,5@y]", "i8[7@y,5@x]")])]
        runs = [self.answers(*many) for _ in range(3)]
        for run in runs:
            for answer in run:
                del answer["synthesis_us"]
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0], runs[2])

    def test_an_answer_comes_before_the_next_question(self):
        with subprocess.Popen([tool.TOOL, "plan", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for i in range(3):
                process.stdin.write(lines(problem(id=i)))
                process.stdin.flush()
                self.assertEqual(json.loads(process.stdout.readline())["id"], i)
            process.stdin.close()
            self.assertEqual(process.wait(), 0)

    def left_alone(self, **how):
        """How a long batch ends if its reader leaves after one answer."""
        many = lines(*[problem()] * 20000)
        with tempfile.TemporaryFile() as questions:
            questions.write(many)
            questions.seek(0)
            with subprocess.Popen([tool.TOOL, "plan", "--batch"], stdin=questions, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, **how) as process:
                process.stdout.readline()
                process.stdout.close()
                error = process.stderr.read()
                code = process.wait(timeout=60)
                return code, error, questions.tell() < len(many)

    def test_a_reader_that_leaves_ends_it(self):
        self.assertEqual(self.left_alone(), (-signal.SIGPIPE, b"", True))

    def test_a_reader_that_leaves_is_told_of_where_pipes_are_ignored(self):
        code, error, early = self.left_alone(restore_signals=False)  # python ignores them
        self.assertEqual((code, early), (1, True))
        self.assertIn(b"the answer could not be written: Broken pipe", error)

    def test_a_full_disk_ends_it(self):
        with tempfile.TemporaryFile() as questions, open("/dev/full", "wb") as full:
            questions.write(lines(*[problem()] * 20000))
            questions.seek(0)
            done = subprocess.run([tool.TOOL, "plan", "--batch"], stdin=questions, stdout=full, stderr=subprocess.PIPE,
                                  timeout=60)
            self.assertLess(questions.tell(), 1 << 20)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"could not be written: No space left", done.stderr)

    def test_stdin_that_cannot_be_read(self):
        folder = os.open(self.folder, os.O_RDONLY)
        for how, why in (({"stdin": folder}, "Is a directory"), ({"preexec_fn": lambda: os.close(0)}, "Bad file")):
            done = subprocess.run([tool.TOOL, "plan", "--batch"], capture_output=True, **how)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn("cannot read stdin: " + why, done.stderr.decode())
        os.close(folder)


if __name__ == "__main__":
    tool.main()
