"""A conversion that is killed at a random moment and resumed gives the same files as one without a kill.
RESHARD_LONG=1 runs two hundred conversions; RESHARD_SEED repeats the random choices."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import suite
from suite import np

import checkpoints as files

RULES = "target tp=4\n*.row = [tp, -]\n*.column = [-, tp]\notherwise = -\n"


class Kills(suite.Case):
    def setUp(self):
        super().setUp()
        tensors = {}
        for i in range(10):
            for name, shape in (("row", (512, 1024)), ("column", (1024, 512)), ("norm", (1024,))):
                tensors[f"{i}.{name}"] = files.values(self.rng, "BF16", shape)
        files.write_dcp(self.path("in"), tensors, 8, {name: 0 for name in tensors})  # 21 MB
        self.text("rules", RULES)
        self.tensors = tensors

    def arguments(self, out, form):
        rules = [] if form == "single" else ["--rules", "rules"]
        return [suite.TOOL, "convert", "in", out, "--to", form, *rules, "--memory", "16MiB", "--jobs", "2"]

    def contents(self, name):
        """Every byte under the path and, for a single file, of its manifest."""
        path = self.path(name)
        paths = [path, path + ".reshard.json"] if os.path.isfile(path) else \
            [os.path.join(path, one) for one in sorted(os.listdir(path))]
        found = {}
        for one in paths:
            with open(one, "rb") as file:
                found[os.path.relpath(one, path).replace("../" + name, "")] = file.read()
        return found

    def clear(self, name):
        for one in (name, name + ".reshard-partial"):
            shutil.rmtree(self.path(one), ignore_errors=True)
        for one in (name, name + ".reshard.json"):
            if os.path.isfile(self.path(one)):
                os.remove(self.path(one))

    def test_killed_and_resumed(self):
        drawn = random.Random(suite.SEED)
        wanted, seconds = {}, {}
        forms = ("ranks", "dcp", "single")
        for form in forms:
            begin = time.monotonic()
            subprocess.run(self.arguments("reference", form), cwd=self.folder, check=True, capture_output=True)
            seconds[form] = time.monotonic() - begin
            wanted[form] = self.contents("reference")
            self.clear("reference")
        batches = 0
        total = 200 if suite.LONG else 9
        for number in range(total):
            form = forms[number % 3]
            self.clear("reference")
            for _ in range(drawn.randrange(1, 4)):  # killed once, or again while it resumes
                process = subprocess.Popen([*self.arguments("reference", form), "--resume"], cwd=self.folder,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(drawn.random() * seconds[form])
                process.send_signal(signal.SIGKILL)
                process.wait()
                if os.path.exists(self.path("reference")):
                    self.assertEqual(self.contents("reference"), wanted[form])
            done = subprocess.run([*self.arguments("reference", form), "--resume", "--json"], cwd=self.folder,
                                  check=False, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            batches += json.loads(done.stdout)["resumed_batches"]
            self.assertTrue(self.contents("reference") == wanted[form], f"{form}, {number} of seed {suite.SEED}")
            self.assertEqual([name for name in os.listdir(self.folder) if "partial" in name], [])
        print(f"{total} conversions killed, {batches} batches not done again")

    def test_every_length_of_the_journal(self):
        """The files become the same, however much of the journal reached the disk."""
        self.clear("reference")
        subprocess.run(self.arguments("reference", "dcp"), cwd=self.folder, check=True, capture_output=True)
        wanted = self.contents("reference")
        self.clear("reference")
        # The disk fills up during the last batches. With --resume the written files stay.
        process = subprocess.Popen([*self.arguments("reference", "dcp"), "--resume"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        journal = self.path("reference.reshard-partial/journal")
        while process.poll() is None and not (os.path.exists(journal) and os.path.getsize(journal) > 200):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if not os.path.exists(journal):
            return  # it ended before this check
        with open(journal, "rb") as file:
            whole = file.read()
        partial = self.path("reference.reshard-partial")
        shutil.copytree(partial, self.path("kept"))
        lengths = sorted({int(n) for n in self.rng.integers(0, len(whole) + 1, 40 if suite.LONG else 4)} | {len(whole)})
        for length in lengths:
            self.clear("reference")
            shutil.copytree(self.path("kept"), partial)
            with open(journal, "wb") as file:
                file.write(whole[:length])
            subprocess.run([*self.arguments("reference", "dcp"), "--resume"], cwd=self.folder, check=True,
                           capture_output=True)
            self.assertTrue(self.contents("reference") == wanted, f"{length} of {len(whole)} bytes of the journal")

    def test_sources_that_changed_begin_anew(self):
        process = subprocess.Popen([*self.arguments("out", "dcp"), "--resume"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not os.path.exists(self.path("out.reshard-partial/journal")):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.clear("in")
        tensors = {name: files.values(self.rng, "BF16", a.shape) for name, a in self.tensors.items()}
        files.write_dcp(self.path("in"), tensors, 8, {name: 0 for name in tensors})
        done = subprocess.run([*self.arguments("out", "dcp"), "--resume"], cwd=self.folder, check=False,
                              capture_output=True)
        if os.path.exists(self.path("out.reshard-partial")) or done.returncode != 0:
            self.assertIn(b"is there already", done.stderr)  # it ended before the kill
            return
        found = files.read_dcp(self.path("out"))
        for name, a in tensors.items():
            self.assertTrue(files.same(found[name], a), name)

    def test_one_that_had_ended(self):
        for form in ("dcp", "single"):
            command = [*self.arguments("out." + form, form), "--resume"]
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
            wanted = self.contents("out." + form)
            again = subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True)
            self.assertIn("an earlier run had made it", again.stdout)
            self.assertTrue(self.contents("out." + form) == wanted)
            other = subprocess.run([*command, "--cast", "f32"], cwd=self.folder, check=False, capture_output=True)
            self.assertIn(b"is there already", other.stderr)

    def test_two_at_once(self):
        first = subprocess.Popen(self.arguments("out", "dcp"), cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        second = subprocess.run(self.arguments("out", "dcp"), cwd=self.folder, check=False, capture_output=True)
        _, complaint = first.communicate()
        self.assertIn(0, (first.returncode, second.returncode), complaint + second.stderr)
        for code, said in ((first.returncode, complaint), (second.returncode, second.stderr)):
            if code != 0:
                self.assertRegex(said, b"another process|is there")
        self.assertEqual(set(files.read_dcp(self.path("out"))), set(self.tensors))


if __name__ == "__main__":
    suite.main()
