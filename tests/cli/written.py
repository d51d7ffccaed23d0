"""Files and folders that the tool writes, with their contents before and after."""

import contextlib
import glob
import hashlib
import os
import random
import shutil

import tool

LONG = os.environ.get("RESHARD_LONG") == "1"
SEED = int(os.environ.get("RESHARD_SEED") or (random.SystemRandom().randrange(2**32) if LONG else 20261126))
OLD = b"what was there before\n"
ARRAY = ("--mesh", "x=4", "f32[2048@x,1024]", "f32[2048,1024@x]")
SMALL = ("--mesh", "x=2", "f32[64@x,64]", "f32[64,64@x]")


def run(*more, question=ARRAY):
    return ("run", "--backend", "local", *question, *more)


CALIBRATE = ("calibrate", "--backend", "local", "--rounds", "1", "--output", "new")
WRITERS = {"--output": run("--output", "new"), "--tiles": run("--tiles", "new"), "calibrate --output": CALIBRATE}


def state(path):
    """The contents under a name: a file's mark, the marks of a folder's files, or nothing."""
    if os.path.isdir(path):
        return {name: state(os.path.join(path, name)) for name in os.listdir(path)}
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Written(tool.Case):
    @classmethod
    def setUpClass(cls):
        cls.random = random.Random(SEED)
        cls.whole = {}

    def new(self, writer):
        """The output of a writer without an attack. Every calibration measures another machine."""
        if writer not in self.whole:
            arguments = [self.path("reference") if word == "new" else word for word in WRITERS[writer]]
            self.ran_well(tool.reshard(*arguments))
            self.whole[writer] = state(self.path("reference"))
            shutil.rmtree(self.path("reference"), ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path("reference"))
        return self.whole[writer]

    def before(self, writer, there):
        """Puts the output of an earlier run of another size there, or nothing."""
        if there and writer == "--tiles":
            self.ran_well(tool.reshard(*run("--tiles", "new", question=("--mesh", "x=6", "f32[6@x]", "f32[6]")),
                                       folder=self.folder))
        elif there:
            with open(self.path("new"), "wb") as file:
                file.write(OLD)
        return state(self.path("new"))

    def check(self, writer, before, leftovers=()):
        now = state(self.path("new"))
        if now != before and writer == "calibrate --output":
            with open(self.path("new"), encoding="utf-8") as file:
                self.assertRegex(file.read(), r"\Amachine calibrated\n(level .*\n)+copy \d+[kMG]?B/s( run \d+[pnum]*s)?\n(piece .*%\n)?\Z")
        elif now != before:
            self.assertTrue(now == self.new(writer), "neither what was there nor the whole of the new")
        self.assertEqual([name for name in os.listdir(self.folder) if name != "new" and name not in leftovers], [])
        return now != before

    def unfinished(self, pid):
        """True while the process has an unnamed file open, or a file with another name exists."""
        if glob.glob(self.path("reshard-*.partial")):
            return True
        with contextlib.suppress(OSError):
            for descriptor in os.listdir("/proc/%d/fd" % pid):
                with contextlib.suppress(OSError):
                    link = os.readlink("/proc/%d/fd/%s" % (pid, descriptor))
                    if link.startswith(self.folder) and link.endswith("(deleted)"):
                        return True
        return False
