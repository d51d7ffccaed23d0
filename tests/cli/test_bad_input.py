"""Every named bad input of golden/bad_input.jsonl gets one clear error, the right exit code, and no output like an answer."""

import json
import os
import struct

import tool


def text_of(given):
    """A string, or a description of a string that would be long or invalid UTF-8."""
    if isinstance(given, str):
        return given.encode("utf-8")
    if "bytes" in given:
        return given["bytes"].encode("latin-1")
    if "mesh_axes" in given:
        return ",".join("a%d=2" % i for i in range(given["mesh_axes"])).encode()
    return (given.get("before", "") + given["repeat"] * given["times"] + given.get("after", "")).encode()


def write_npy(path, change):
    text = change.get("text") or "{'descr': %s, 'fortran_order': False, 'shape': %s, }" % (
        change.get("descr", "'<f4'"), change.get("shape", "(4,)"))
    version = change.get("version", [1, 0])
    text = text + " " * (128 - (10 if version[0] == 1 else 12) - len(text) - 1) + "\n"
    length = struct.pack("<H" if version[0] == 1 else "<I", change.get("length", len(text)))
    magic = change["magic"].encode() if "magic" in change else b"\x93NUMPY"
    whole = magic + bytes(version) + length + text.encode() + bytes(range(16)) + change.get("after", "").encode()
    with open(path, "wb") as file:
        file.write(whole[: change.get("cut", len(whole))])


def arguments_of(case):
    if "arguments" in case:
        return case["arguments"]
    command = "plan" if "plan" in case else "run"
    mesh, *rest = [text_of(word) for word in case[command]]
    return [command, b"--mesh=" + mesh, *rest]


class BadInput(tool.Case):
    def check_line(self, case):
        ran = tool.reshard("plan", "--batch", stdin=text_of(case["line"]) + b"\n", folder=self.folder)
        self.assertEqual(ran.code, 1)
        lines = ran.out.splitlines()
        self.assertEqual(len(lines), 1)
        answer = json.loads(lines[0])
        self.assertEqual(sorted(answer), ["error", "id"])
        self.assertIn(case["error"], answer["error"]["message"])
        self.assertLess(len(lines[0]), 2000)

    def check_command(self, case):
        if "npy" in case:
            write_npy(self.path("a.npy"), case["npy"])
        before = sorted(os.listdir(self.folder))
        ran = tool.reshard(*arguments_of(case), folder=self.folder)
        self.assertEqual(ran.code, case.get("exit", 2), ran.err)
        self.assertEqual(ran.out, "")
        lines = ran.err.splitlines()
        self.assertTrue(lines and lines[0].startswith("reshard: "), ran.err)
        self.assertIn(case["error"], lines[0])
        # A sentence, and for an error in text its place.
        self.assertIn(len(lines), (1, 3), ran.err)
        if len(lines) == 3:
            self.assertEqual(lines[2].strip(), "^")
        self.assertTrue(all(len(line) < 1000 for line in lines), "a line to read")
        self.assertTrue(all(c == "\n" or " " <= c <= "~" for c in ran.err), "printable")
        self.assertEqual(sorted(os.listdir(self.folder)), before, "nothing is left behind")

    def check_json(self, case):
        """With --json the error is JSON on stdout too."""
        ran = tool.reshard(*arguments_of(case), "--json", folder=self.folder)
        self.assertEqual(ran.code, case.get("exit", 2))
        self.assertIn("error", json.loads(ran.out))

    def test_all(self):
        with open(os.path.join(tool.HERE, "golden", "bad_input.jsonl"), encoding="utf-8") as file:
            cases = [json.loads(line) for line in file]
        self.assertGreaterEqual(len(cases), 60)
        self.assertEqual(len({case["name"] for case in cases}), len(cases), "names are names")
        for case in cases:
            with self.subTest(case["name"]):
                self.setUp()
                if "line" in case:
                    self.check_line(case)
                else:
                    self.check_command(case)
                if case["name"] in ("unknown axis", "peak limit below the floor", "axis given twice"):
                    self.check_json(case)

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "wb") as full:
            done = tool.subprocess.run([tool.TOOL, "plan", "f32[4]", "f32[4]"], stdout=full,
                                       stderr=tool.subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"could not be written", done.stderr)


if __name__ == "__main__":
    tool.main()
