"""`reshard convert` refuses to write over files of other programs, and leaves them unchanged."""

import json
import os
import signal
import stat
import subprocess
import time
import unittest

import suite

import checkpoints as files

LINK = "is a symbolic link"


def described(path):
    """Everything below a path: kinds, modes, links, bytes."""
    status = os.lstat(path)
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFLNK:
        return kind, os.readlink(path)
    if kind == stat.S_IFDIR:
        return kind, {name: described(os.path.join(path, name)) for name in sorted(os.listdir(path))}
    if kind == stat.S_IFREG:
        with open(path, "rb") as file:
            return kind, status.st_mode, file.read()
    return kind, status.st_mode


class Outputs(suite.Case):
    def setUp(self):
        super().setUp()
        self.tensors = {name: files.values(self.rng, "F32", (64, 24)) for name in ("a", "b")}
        files.write(self.path("in.safetensors"), self.tensors)
        files.write(self.path("one.safetensors"), {"a": self.tensors["a"]})
        os.mkdir(self.path("precious"))
        os.mkdir(self.path("precious/files"))
        self.text("precious/journal", "what I thought today\n")
        self.text("precious/files/paper.txt", "years of work\n")
        self.outputs = {"out.safetensors": ["in.safetensors"], "out": ["in.safetensors", "--to", "index"],
                        "out.zarr": ["one.safetensors", "--chunks", "16,8"], "out.npy": ["one.safetensors"]}

    def convert(self, out, *options):
        source, *form = self.outputs[out]
        return ["convert", source, out, *form, *options]

    def stays(self, out, said, *options):
        """Expects that the conversion fails with these words and changes nothing."""
        before = described(self.folder)
        told = self.refused(*self.convert(out, *options))
        self.assertIn(said, told)
        self.assertEqual(described(self.folder), before, f"{out} {options}: {told}")
        return told

    def removed(self, name):
        path = self.path(name)
        if os.path.isdir(path) and not os.path.islink(path):
            for inner in os.listdir(path):
                self.removed(os.path.join(name, inner))
            os.rmdir(path)
        elif os.path.lexists(path):
            os.remove(path)

    def test_something_in_place_of_the_folder_in_which_it_is_made(self):
        for out in self.outputs:
            partial = out + ".reshard-partial"
            for resume in ((), ("--resume",)):
                os.symlink("precious", self.path(partial))
                self.stays(out, LINK, *resume)
                self.removed(partial)
                os.symlink("nowhere", self.path(partial))
                self.stays(out, LINK, *resume)
                self.removed(partial)
                os.mkfifo(self.path(partial))
                self.stays(out, "a folder is wanted", *resume)
                self.removed(partial)
                self.text(partial, "mine\n")
                self.stays(out, "a folder is wanted", *resume)
                self.removed(partial)

    def test_a_folder_that_no_run_made(self):
        for out in ("out.safetensors", "out"):
            partial = self.path(out + ".reshard-partial")
            for resume in ((), ("--resume",)):
                os.rename(self.path("precious"), partial)
                told = self.stays(out, "was not made by reshard", *resume)
                self.assertIn("name another target", told)
                with open(os.path.join(partial, "journal"), "w", encoding="utf-8"):
                    pass  # like the remains of a run killed at once, without the files
                self.stays(out, "was not made by reshard", *resume)
                self.removed(partial + "/files")
                self.text(partial + "/notes", "and more\n")
                self.stays(out, "was not made by reshard: 'notes'", *resume)
                self.removed(partial + "/notes")
                self.text(partial + "/journal", "what I thought today\n")
                self.stays(out, "was not made by reshard", *resume)
                # A folder with the mark and something beside it.
                self.text(partial + "/made-by-reshard", "")
                self.text(partial + "/notes", "and more\n")
                self.stays(out, "was not made by reshard: 'notes'", *resume)
                self.removed(partial)
                os.mkdir(self.path("precious"))
                os.mkdir(self.path("precious/files"))
                self.text("precious/journal", "what I thought today\n")

    @unittest.skipUnless(os.geteuid() == 0, "only root gives a folder away")
    def test_a_folder_of_another_user(self):
        partial = self.path("out.reshard-partial")
        os.mkdir(partial)
        os.chown(partial, 12345, 12345)
        self.stays("out", "belongs to another user")
        self.stays("out", "belongs to another user", "--resume")

    def test_links_in_a_folder_that_a_run_made(self):
        partial = self.path("out.reshard-partial")
        before = described(self.path("precious"))
        for kind in ("link", "second name", "pipe", "folder"):
            os.mkdir(partial)
            self.text("out.reshard-partial/made-by-reshard", "")
            journal = os.path.join(partial, "journal")
            if kind == "link":
                os.symlink("../precious/journal", journal)
            elif kind == "second name":
                os.link(self.path("precious/journal"), journal)
            elif kind == "pipe":
                os.mkfifo(journal)
            else:
                os.mkdir(journal)
            for resume in ((), ("--resume",)):
                self.stays("out", "out.reshard-partial/journal", *resume)
            self.removed("out.reshard-partial")
        for out in self.outputs:
            for resume in ((), ("--resume",)):
                os.mkdir(self.path(out + ".reshard-partial"))
                self.text(out + ".reshard-partial/made-by-reshard", "")
                os.symlink("../precious/files", self.path(out + ".reshard-partial/files"))
                self.runs(*self.convert(out, *resume))
                self.assertEqual(described(self.path("precious")), before)
                self.removed(out)
                self.removed(out + ".reshard.json")

    def test_links_in_place_of_files_that_are_to_be_resumed(self):
        """--resume keeps the remains of a run. It refuses a link or a second name in them."""
        big = files.values(self.rng, "F32", (512, 1024))
        files.write(self.path("in.safetensors"), {f"t{n}": big for n in range(8)})
        command = [suite.TOOL, *self.convert("out.safetensors", "--resume", "--memory", "12MiB", "--jobs", "1")]
        journal = self.path("out.safetensors.reshard-partial/journal")
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            if os.path.exists(journal) and os.path.getsize(journal) > 90:  # a head and a batch
                process.send_signal(signal.SIGSTOP)
                break
            time.sleep(0.0002)
        if process.poll() is not None:
            self.skipTest("it was faster than the look at it")
        process.kill()
        process.wait()
        if not os.path.exists(journal):
            self.skipTest("it was faster than the look at it")
        made = self.path("out.safetensors.reshard-partial/files/out.safetensors")
        victim = self.path("precious/paper.safetensors")
        os.rename(made, victim)
        os.symlink(victim, made)
        options = ("--resume", "--memory", "12MiB", "--jobs", "1")
        self.stays("out.safetensors", LINK, *options)
        os.remove(made)
        os.link(victim, made)
        self.stays("out.safetensors", "another name", *options)
        os.remove(made)
        os.rename(victim, made)
        self.runs(*self.convert("out.safetensors", *options, "--verify"))

    def test_something_in_place_of_the_output(self):
        for out in self.outputs:
            for resume in ((), ("--resume",)):
                os.mkfifo(self.path(out))
                self.stays(out, "is there already", *resume)
                self.removed(out)
                os.mkdir(self.path(out))
                self.stays(out, "is there already", *resume)
                self.removed(out)
                for target in ("precious", "precious/journal", "nowhere"):
                    os.symlink(target, self.path(out))
                    self.stays(out, "is there already", *resume)
                    self.removed(out)

    def test_a_report_of_somebody_else(self):
        self.runs("convert", "in.safetensors", "other.safetensors")
        with open(self.path("other.safetensors.reshard.json"), encoding="utf-8") as file:
            other = file.read()
        mine = json.loads(other.replace("other.safetensors", "out.safetensors"))
        del mine["made_by"]
        for out in ("out.safetensors", "out.npy"):
            report = out + ".reshard.json"
            for text in ("what I measured\n", "", "{}", "[1, 2]", '{"files": 1, "made_by": "reshard convert"}', other,
                         json.dumps(mine)):
                self.text(report, text)
                for options in ((), ("--resume",), ("--dry-run",)):
                    told = self.stays(out, "is there already", *options)
                    self.assertIn("did not write it", told)
                    self.assertIn("move it away", told)
            self.removed(report)
            for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("precious/journal", path),
                         lambda path: os.symlink("nowhere", path)):
                make(self.path(report))
                self.stays(out, "is there already")
                self.removed(report)
            if os.geteuid() == 0:
                self.text(report, other.replace("other.safetensors", out))
                os.chown(self.path(report), 12345, 12345)
                self.stays(out, "is there already")
                self.removed(report)

    def test_a_report_of_an_earlier_output(self):
        self.runs(*self.convert("out.safetensors"))
        before = described(self.path("out.safetensors.reshard.json"))
        self.removed("out.safetensors")
        self.runs(*self.convert("out.safetensors", "--cast", "bf16"))
        self.assertNotEqual(described(self.path("out.safetensors.reshard.json")), before)

    def test_only_a_run_that_resumes_removes_what_is_left(self):
        for out in ("out.safetensors", "out"):
            self.runs(*self.convert(out))
            partial = out + ".reshard-partial"
            os.symlink("precious", self.path(partial))
            before = described(self.folder)
            for option in ("--resume", "--dry-run"):
                self.assertIn("an earlier run had made it", self.runs(*self.convert(out, option)))
                self.assertEqual(described(self.folder), before)
            self.removed(partial)
            os.mkdir(self.path(partial))
            self.text(partial + "/made-by-reshard", "")
            self.runs(*self.convert(out, "--dry-run"))
            self.assertTrue(os.path.exists(self.path(partial)))
            self.runs(*self.convert(out, "--resume"))
            self.assertFalse(os.path.exists(self.path(partial)))

    def test_modes(self):
        """During the run only the owner can use the folder. The output has the user's default modes."""
        kept = os.umask(0o022)
        try:
            for out in self.outputs:
                self.runs(*self.convert(out))
                mode = stat.S_IMODE(os.stat(self.path(out)).st_mode)
                self.assertEqual(mode, 0o755 if os.path.isdir(self.path(out)) else 0o644)
        finally:
            os.umask(kept)


if __name__ == "__main__":
    suite.main()
