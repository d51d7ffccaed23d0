"""A given output name may already be a link, device, pipe or folder. The tool keeps each as it is, or refuses it."""

import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import unittest

import npy_file
import tool
from written import LONG, OLD, SEED, SMALL, WRITERS, Written, run, state


def is_root():
    return os.geteuid() == 0


def as_nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


class Destinations(Written):
    def test_a_planted_link_is_not_followed(self):
        """The temporary names that a run could take lead to a file that must not change."""
        for writer, arguments in WRITERS.items():
            with self.subTest(writer=writer):
                self.setUp()
                victim = self.path("victim")
                with open(victim, "wb") as file:
                    file.write(OLD)

                def plant():
                    for name in ("new.partial-%d" % os.getpid(), "new.partial", "new.tmp", "reshard.partial"):
                        os.symlink(victim, self.path(name))

                done = subprocess.run([tool.TOOL, *arguments], cwd=self.folder, capture_output=True, preexec_fn=plant)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(victim, "rb") as file:
                    self.assertEqual(file.read(), OLD)
                self.assertFalse(os.path.islink(self.path("new")))

    def test_a_link_is_followed_to_what_it_means(self):
        """The file behind a link is replaced, in its own folder, and the link stays. A broken link is refused."""
        for writer, arguments in WRITERS.items():
            with self.subTest(writer=writer):
                self.setUp()
                self.before(writer, True)
                os.mkdir(self.path("there"))
                os.rename(self.path("new"), self.path("there/real"))
                os.symlink("there/real", self.path("middle"))
                os.symlink("middle", self.path("new"))
                self.ran_well(tool.reshard(*arguments, folder=self.folder))
                self.assertEqual(os.readlink(self.path("new")), "middle")
                self.assertEqual(os.listdir(self.path("there")), ["real"])
                self.assertTrue(self.check(writer, OLD, ("there", "middle")))
                shutil.rmtree(self.path("there"))
                ran = tool.reshard(*arguments, folder=self.folder)
                self.assertEqual((ran.code, ran.out), (2, ""))
                self.assertIn("'new': a symbolic link to nothing", ran.err)

    def test_hard_links_keep_what_they_had(self):
        with open(self.path("other"), "wb") as file:
            file.write(OLD)
        os.link(self.path("other"), self.path("new"))
        self.ran_well(tool.reshard(*WRITERS["--output"], folder=self.folder))
        with open(self.path("other"), "rb") as file:
            self.assertEqual(file.read(), OLD)
        self.assertTrue(self.check("--output", OLD, ("other",)))

    def test_mode_and_owner_stay(self):
        for writer, mode in (("--output", 0o640), ("--tiles", 0o750)):
            self.before(writer, True)
            os.chmod(self.path("new"), mode)
            if is_root():
                os.chown(self.path("new"), 1234, 2345)
            old = os.stat(self.path("new"))
            self.ran_well(tool.reshard(*WRITERS[writer], folder=self.folder))
            now = os.stat(self.path("new"))
            self.assertNotEqual(now.st_ino, old.st_ino)
            self.assertEqual((now.st_mode, now.st_uid, now.st_gid), (old.st_mode, old.st_uid, old.st_gid))
            self.setUp()

    def device(self, name, major, minor):
        try:
            os.mknod(self.path(name), stat.S_IFCHR | 0o666, os.makedev(major, minor))
            with open(self.path(name), "wb"):
                pass
        except OSError:
            self.skipTest("may not make devices here")

    def test_devices_stay_devices(self):
        self.device("new", 1, 3)  # null
        node = os.stat(self.path("new"))
        for writer in ("--output", "calibrate --output"):
            self.ran_well(tool.reshard(*WRITERS[writer], folder=self.folder))
            now = os.stat(self.path("new"))
            self.assertEqual((now.st_ino, now.st_mode, now.st_rdev), (node.st_ino, node.st_mode, node.st_rdev))
        os.remove(self.path("new"))
        self.device("new", 1, 7)  # full
        for writer in ("--output", "calibrate --output"):
            ran = tool.reshard(*WRITERS[writer], folder=self.folder)
            self.assertEqual((ran.code, ran.out), (2, ""))
            self.assertIn("cannot write 'new': No space left on device", ran.err)
        ran = tool.reshard(*WRITERS["--tiles"], folder=self.folder)
        self.assertEqual(ran.code, 2)
        self.assertIn("cannot create folder 'new': a file is there", ran.err)
        self.assertEqual(os.listdir(self.folder), ["new"])

    def piped(self, arguments, read):
        """The tool writes into a pipe `new`; `read` reads it in a thread."""
        os.mkfifo(self.path("new"))
        both_ends = os.open(self.path("new"), os.O_RDWR)  # so neither of the next two waits
        pipe = open(self.path("new"), "rb")
        writer = os.open(self.path("new"), os.O_WRONLY)  # the reader sees no end before the tool opens the pipe
        os.close(both_ends)
        got = []

        def reader():
            with pipe:
                got.append(read(pipe))

        thread = threading.Thread(target=reader, daemon=True)
        thread.start()
        ran = tool.reshard(*arguments, folder=self.folder)
        os.close(writer)
        thread.join(timeout=60)
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("new")).st_mode))
        self.assertEqual(os.listdir(self.folder), ["new"])
        return ran, got[0]

    def test_pipes_get_the_whole(self):
        for writer in ("--output", "calibrate --output"):
            self.setUp()
            ran, got = self.piped(WRITERS[writer], lambda pipe: pipe.read())
            self.ran_well(ran)
            if writer == "--output":
                self.assertEqual(hashlib.sha256(got).hexdigest(), self.new(writer))
            else:
                self.assertIn(b"machine calibrated", got)

    def test_streams_are_in_the_order_of_the_file(self):
        """Replicas, cut blocks, Fortran order, no elements: a pipe gets the same bytes as a file."""
        for fortran in (False, True):
            for shape, source, target in (((30, 7), "i32[30@x,7]", "i32[30,7@(y,x)]"), ((30, 7), "i32[30,7]", "i32[30@x/4,7@y/2]"),
                                          ((), "i32[]", "i32[]"), ((0, 3), "i32[0@x,3]", "i32[0,3@x]"),
                                          ((600, 501), "i32[600,501@(x,y)]", "i32[600@y,501@x/7]")):
                self.setUp()
                elements = {}
                for i, index in enumerate(npy_file.indices(shape, False)):
                    elements[index] = i.to_bytes(4, "little")
                with self.subTest(target=target, fortran=fortran):
                    os.mkdir(self.path("in"))
                    self.folder = self.path("in")
                    npy_file.write(self.path("../a.npy"), "<i4", shape, elements, fortran)
                    question = ("--mesh", "x=2,y=3", source, target, "--input", "../a.npy")
                    ran, got = self.piped(run("--output", "new", question=question), lambda pipe: pipe.read())
                    self.ran_well(ran)
                    self.ran_well(tool.reshard(*run("--output", "../b.npy", question=question), folder=self.folder))
                    with open(self.path("../b.npy"), "rb") as file:
                        self.assertEqual(got, file.read())
                    if 0 < len(elements) < 1000:
                        self.assertEqual(npy_file.read(self.path("../b.npy")).elements, elements)

    def test_a_reader_that_leaves_a_pipe(self):
        ran, _ = self.piped(WRITERS["--output"], lambda pipe: pipe.read(10))
        self.assertEqual((ran.code, ran.out), (2, ""))
        self.assertIn("cannot write 'new': Broken pipe", ran.err)

    def test_a_pipe_that_nobody_reads(self):
        os.mkfifo(self.path("new"))
        begin = time.monotonic()
        with subprocess.Popen([tool.TOOL, *run("--output", "new", question=SMALL)], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            if not LONG:  # it may take ten seconds; a short run only checks that it waits and can be ended
                time.sleep(0.5)  # if too short on a busy machine, the signal comes before the wait and still ends it
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(timeout=tool.SECONDS_MAX), -signal.SIGTERM)
                return
            self.assertIn(b"cannot write 'new': nobody reads it", process.stderr.read())
            self.assertEqual(process.wait(timeout=tool.SECONDS_MAX), 2)
        self.assertLess(time.monotonic() - begin, 60)

    def test_pipes_that_nobody_writes(self):
        """Every reader of a pipe refuses it at once instead of waiting."""
        os.mkfifo(self.path("pipe"))
        for arguments, why in ((run("--input", "pipe", question=SMALL), "a pipe, not a regular file"),
                               (("plan", *SMALL, "--machine", "pipe"), "a pipe that nobody writes"),
                               (("plan", *SMALL, "--first", "pipe"), "a pipe that nobody writes"),
                               (("plan", "--list", "pipe"), "a pipe that nobody writes"),
                               (run("--list", "pipe", question=()), "a pipe that nobody writes")):
            with self.subTest(arguments=arguments):
                ran = tool.reshard(*arguments, folder=self.folder)
                self.assertEqual((ran.code, ran.out), (2, ""))
                self.assertIn("cannot read 'pipe': " + why, ran.err)

    def test_pipes_that_somebody_writes_late(self):
        """A machine, first steps and a list may come through pipes, as from <(...)."""
        line = '{"mesh":"x=2","source":"f32[4@x]","target":"f32[4]"}'
        machine = "machine mine\nlevel node devices all message 1us bandwidth 1GB/s\ncopy 1GB/s\n"
        for option, text, said in (("--machine", machine, "on mine"), ("--first", "all_gather f32[64,64]\n", "all_gather"),
                                   ("--list", line + "\n", "1 arrays")):
            with self.subTest(option=option):
                question = () if option == "--list" else SMALL
                script = '{ sleep 0.2; printf %s "$1"; } | "$0" plan "${@:2}" ' + option + " /dev/fd/0"
                ran = tool.ended(["bash", "-c", script, tool.TOOL, text, *question], folder=self.folder)
                self.assertIn(said, self.ran_well(ran).out)

    def test_what_may_not_be_written(self):
        """Another user: a file or folder that is read-only, or lies in a read-only folder."""
        if not is_root():
            self.skipTest("only root can be another user")
        for name, mode, there in (("--output", 0o444, True), ("--tiles", 0o555, True), ("--output", 0o755, False),
                                  ("--tiles", 0o755, False), ("calibrate --output", 0o444, True)):
            with self.subTest(writer=name, there=there):
                self.setUp()
                before = self.before(name, there)
                os.chmod(self.folder, 0o777 if there else 0o755)
                if there:
                    os.chmod(self.path("new"), mode)
                done = subprocess.run([tool.TOOL, *WRITERS[name]], cwd=self.folder, capture_output=True,
                                      preexec_fn=as_nobody)
                if b"Permission denied" in done.stderr and done.returncode < 0:
                    self.skipTest("another user may not run the tool")
                self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
                self.assertRegex(done.stderr.decode(), r"\Areshard: (rank 0: )?cannot .*'new': Permission denied\n\Z")
                self.assertFalse(self.check(name, before))

    # Folders of tiles.

    def test_tiles_of_an_earlier_run_go(self):
        """More ranks, fewer ranks, an empty folder: afterwards the folder has only the new set."""
        for there in ("x=6", "x=2", "empty"):
            self.setUp()
            if there == "empty":
                os.mkdir(self.path("new"))
            else:
                self.ran_well(tool.reshard(*run("--tiles", "new", question=("--mesh", there, "i8[12@x]", "i8[12]")),
                                           folder=self.folder))
            self.ran_well(tool.reshard(*WRITERS["--tiles"], folder=self.folder))
            self.assertTrue(self.check("--tiles", {}))

    def test_a_folder_with_anything_else_is_refused(self):
        for other in ("notes.txt", "rank0.json/", "rank.json", "rank1.source.npy.old", ".hidden"):
            with self.subTest(other=other):
                self.setUp()
                before = self.before("--tiles", other[:-1] != "rank0.json")
                if other.endswith("/"):
                    os.makedirs(self.path("new/" + other))
                else:
                    with open(self.path("new/" + other), "w", encoding="utf-8"):
                        pass
                before = state(self.path("new"))
                ran = tool.reshard(*WRITERS["--tiles"], folder=self.folder)
                self.assertEqual((ran.code, ran.out), (2, ""))
                self.assertIn("'%s' in it is no tile; name a folder of its own" % other.rstrip("/"), ran.err)
                self.assertFalse(self.check("--tiles", before))

    def test_trailing_slashes(self):
        for _ in range(2):
            self.ran_well(tool.reshard(*run("--tiles", "new//"), folder=self.folder))
        self.assertTrue(self.check("--tiles", None))


class LaunchedStreams(tool.Case):
    @unittest.skipUnless(tool.MPIEXEC, "there is no MPI")
    def test_pipes_get_the_whole(self):
        os.mkfifo(self.path("pipe"))
        question = ("run", "--mesh", "x=2,y=2", "f32[600@x,901]", "f32[600,901@(y,x)]", "--output")
        with open(self.path("got"), "wb") as got, subprocess.Popen(["cat", self.path("pipe")], stdout=got) as reader:
            ran = tool.reshard(*question, "pipe", ranks=4, folder=self.folder)
            reader.wait(timeout=60)
        self.ran_well(ran)
        self.ran_well(tool.reshard(*question, "file", "--backend", "local", folder=self.folder))
        self.assertEqual(state(self.path("got")), state(self.path("file")))


if __name__ == "__main__":
    print("RESHARD_SEED=%d" % SEED, file=sys.stderr)
    tool.main()
