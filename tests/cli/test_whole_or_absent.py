"""What was tried on files: each writer under each attack. Afterwards the name that was given holds the whole of the new
or exactly what it held before, and nothing else is left behind; only KILL may leave reshard-*.partial, which harms no
later run."""

import contextlib
import ctypes
import errno
import glob
import hashlib
import os
import platform
import random
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
import unittest

import npy_file
import tool

SEED = int(os.environ.get("RESHARD_SEED") or random.SystemRandom().randrange(2**32))
LONG = os.environ.get("RESHARD_LONG") == "1"
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OLD = b"what was there before\n"
ARRAY = ("--mesh", "x=4", "f32[2048@x,1024]", "f32[2048,1024@x]")
SMALL = ("--mesh", "x=2", "f32[64@x,64]", "f32[64,64@x]")


def run(*more, question=ARRAY):
    return ("run", "--backend", "local", *question, *more)


CALIBRATE = ("calibrate", "--backend", "local", "--rounds", "1", "--output", "new")
WRITERS = {"--output": run("--output", "new"), "--tiles": run("--tiles", "new"), "calibrate --output": CALIBRATE}


def state(path):
    """What a name means: a file's mark, those of a folder's files, or nothing."""
    if os.path.isdir(path):
        return {name: state(os.path.join(path, name)) for name in os.listdir(path)}
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def on_an_old_file_system():
    """In a child: as where files need names and folders cannot be exchanged. A filter makes these two calls fail."""
    machine = {"x86_64": (0xC000003E, 257, 316), "aarch64": (0xC00000B7, 56, 276)}.get(platform.machine())
    if machine is None:
        raise OSError("no numbers of calls for this machine")
    _, openat, renameat2 = machine
    load, equal, any_bit, answer = 0x20, 0x15, 0x45, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000
    program = ((load, 0, 0, 0),                                 # the call's number
               (equal, 0, 3, openat),
               (load, 0, 0, 16 + 2 * 8),                        # its flags
               (any_bit, 0, 6, 0o20000000),                     # O_TMPFILE
               (answer, 0, 0, refuse | errno.EOPNOTSUPP),
               (equal, 0, 4, renameat2),
               (load, 0, 0, 16 + 4 * 8),                        # its flags
               (any_bit, 0, 2, 2),                              # RENAME_EXCHANGE
               (answer, 0, 0, refuse | errno.EINVAL),
               (answer, 0, 0, allow),
               (answer, 0, 0, allow))
    text = b"".join(struct.pack("HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(text)
    whole = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_filter = 38, 22
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or libc.prctl(set_filter, 2, whole, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter")


def is_root():
    return os.geteuid() == 0


def as_nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


class WholeOrAbsent(tool.Case):
    @classmethod
    def setUpClass(cls):
        cls.random = random.Random(SEED)
        cls.whole = {}

    def new(self, writer):
        """What a writer writes when nobody attacks; every calibration measures another machine."""
        if writer not in self.whole:
            arguments = [self.path("reference") if word == "new" else word for word in WRITERS[writer]]
            self.ran_well(tool.reshard(*arguments))
            self.whole[writer] = state(self.path("reference"))
            shutil.rmtree(self.path("reference"), ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path("reference"))
        return self.whole[writer]

    def before(self, writer, there):
        """Puts there what an earlier run of another size left, or nothing."""
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
                self.assertRegex(file.read(), r"\Amachine calibrated\n(level .*\n)+copy \d+[kMG]?B/s\n\Z")
        elif now != before:
            self.assertTrue(now == self.new(writer), "neither what was there nor the whole of the new")
        self.assertEqual([name for name in os.listdir(self.folder) if name != "new" and name not in leftovers], [])
        return now != before

    # Signals, at the moment when something is unfinished.

    def unfinished(self, pid):
        """True while the process has a file without a name open, or one of another name is there."""
        if glob.glob(self.path("reshard-*.partial")):
            return True
        with contextlib.suppress(OSError):
            for descriptor in os.listdir("/proc/%d/fd" % pid):
                with contextlib.suppress(OSError):
                    link = os.readlink("/proc/%d/fd/%s" % (pid, descriptor))
                    if link.startswith(self.folder) and link.endswith("(deleted)"):
                        return True
        return False

    before_run = None  # in the child

    def struck(self, arguments, number, delay):
        """Runs the tool, sends the signal a moment after something unfinished is seen; True when it was seen."""
        with subprocess.Popen([tool.TOOL, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, preexec_fn=self.before_run) as process:
            seen = False
            while process.poll() is None and not seen:
                seen = self.unfinished(process.pid)
            time.sleep(delay)
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            error = process.stderr.read()
            self.assertIn(process.wait(timeout=tool.SECONDS_MAX), (0, -number), error)
            return seen and process.returncode == -number

    def test_signals(self):
        for writer, arguments in WRITERS.items():
            struck = 0
            for number in SIGNALS:
                for there in (True, False) if writer != "calibrate --output" else (True,):
                    for _ in range(20 if LONG else 1):
                        self.setUp()
                        delay = self.random.random() * 0.01
                        with self.subTest(writer=writer, signal=number.name, there=there, delay=delay):
                            before = self.before(writer, there)
                            struck += self.struck(arguments, number, delay)
                            left = glob.glob(self.path("reshard-*.partial")) if number == signal.SIGKILL else ()
                            self.check(writer, before, [os.path.basename(name) for name in left])
                            if left:  # what is left harms no later run
                                self.ran_well(tool.reshard(*arguments, folder=self.folder))
            if writer != "calibrate --output":  # which is written in too short a time to be met
                self.assertGreater(struck, 0, "no signal met anything unfinished")

    def test_both_at_once(self):
        """--tiles and --output of one run are named when both are whole: a failure of one leaves both as they were."""
        before = self.before("--tiles", True)
        ran = tool.reshard(*run("--tiles", "new", "--output", "/dev/full"), folder=self.folder)
        self.assertEqual(ran.code, 2)
        self.assertIn("No space left", ran.err)
        self.assertFalse(self.check("--tiles", before))

    def test_nohup_is_obeyed(self):
        with subprocess.Popen([tool.TOOL, *WRITERS["--tiles"]], cwd=self.folder, stdout=subprocess.DEVNULL,
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
            while process.poll() is None and not self.unfinished(process.pid):
                pass
            process.send_signal(signal.SIGHUP)
            self.assertEqual(process.wait(timeout=tool.SECONDS_MAX), 0)
        self.assertTrue(self.check("--tiles", None))

    # Disks that are full.

    def limited(self, writer, arguments, bytes_max):
        for there in (True, False):
            self.setUp()
            before = self.before(writer, there)
            done = subprocess.run(
                [tool.TOOL, *arguments], cwd=self.folder, capture_output=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, bytes_max)))
            self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
            self.assertRegex(done.stderr.decode(), r"\Areshard: (rank \d+: )?cannot .*'new.*': File too large\n\Z")
            self.assertFalse(self.check(writer, before))

    def test_files_that_may_not_grow(self):
        for writer, bytes_max in (("--output", 4096), ("--output", 100), ("--tiles", 4096), ("--tiles", 1 << 20),
                                  ("calibrate --output", 10)):
            with self.subTest(writer=writer, bytes_max=bytes_max):
                self.limited(writer, WRITERS[writer], bytes_max)

    def test_full_disk(self):
        """A file system of its own; a machine file meets one without a free page."""
        self.setUp()
        disk = self.path("disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "reshard-test", disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("may not mount a file system")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", disk], check=True))
        for writer, arguments in WRITERS.items():
            with self.subTest(writer=writer):
                outer, self.folder = self.folder, disk
                try:
                    before = self.before(writer, True)
                    full = self.path("full")
                    with contextlib.suppress(OSError), open(full, "wb", buffering=0) as file:
                        while writer == "calibrate --output" and file.write(bytes(4096)):
                            pass
                    ran = tool.reshard(*arguments, folder=disk)
                    self.assertEqual((ran.code, ran.out), (2, ""))
                    self.assertRegex(ran.err, r"\Areshard: (rank \d+: )?cannot .*: No space left on device\n\Z")
                    os.remove(full)
                    self.assertFalse(self.check(writer, before))
                    shutil.rmtree(self.path("new"), ignore_errors=True)
                    with contextlib.suppress(FileNotFoundError):
                        os.remove(self.path("new"))
                finally:
                    self.folder = outer

    def test_stdout_that_is_full_or_closed(self):
        ends = ("f32[8@x]", "f32[8]")
        for arguments in (("plan", "--mesh", "x=2", *ends), ("explain", "--mesh", "x=2", *ends), ("--help",),
                          ("draw", "--mesh", "x=2", *ends), ("draw", "--svg", "--mesh", "x=2", *ends), ("--version",),
                          ("run", "--backend", "local", "--mesh", "x=2", *ends), ("translate", "--mesh", "x=2", "f32[8@x]"),
                          ("plan", "--json", "--mesh", "x=2", *ends), ("plan", "--json", "--mesh", "x=2", "f32[", "f32[")):
            with self.subTest(arguments=arguments):
                with open("/dev/full", "wb") as full:
                    done = subprocess.run([tool.TOOL, *arguments], stdout=full, stderr=subprocess.PIPE)
                self.assertGreater(done.returncode, 0)
                self.assertIn(b"could not be written: No space left on device", done.stderr)
                ours, theirs = os.pipe()
                os.close(ours)
                done = subprocess.run([tool.TOOL, *arguments], stdout=theirs, stderr=subprocess.PIPE)
                os.close(theirs)
                self.assertEqual(done.returncode, -signal.SIGPIPE)

    def test_closed_standard_streams(self):
        """A file that is opened must not become stdout: the report would be written into it."""

        def closed():
            os.closerange(0, 3)

        npy_file.write(self.path("in.npy"), "<i4", (64, 64), {(i, j): b"abcd" for i in range(64) for j in range(64)})
        question = ("--mesh", "x=2", "i32[64@x,64]", "i32[64,64@x]")
        self.ran_well(tool.reshard(*run("--input", "in.npy", "--output", "right", question=question), folder=self.folder))
        done = subprocess.run([tool.TOOL, *run("--input", "in.npy", "--output", "new", question=question)],
                              cwd=self.folder, preexec_fn=closed)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(state(self.path("new")), state(self.path("right")))

    # Links, devices, pipes, folders under the names that are given.

    def test_a_planted_link_is_not_followed(self):
        """The names that a run of that process could be expected to take lead to a file that must not change."""
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
        """What it leads to is replaced, in that one's folder; the link stays. A link to nothing is refused."""
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
        """The tool writes into a pipe `new` that `read` reads in a thread."""
        os.mkfifo(self.path("new"))
        got = []

        def reader():
            with open(self.path("new"), "rb") as pipe:
                got.append(read(pipe))

        thread = threading.Thread(target=reader)
        thread.start()
        ran = tool.reshard(*arguments, folder=self.folder)
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
        """Replicas, cut blocks, Fortran order, no elements: what a pipe gets is what a file holds."""
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
            if not LONG:  # it has ten seconds; that it is waiting and can be ended will do
                time.sleep(0.5)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(timeout=5), -signal.SIGTERM)
                return
            self.assertIn(b"cannot write 'new': nobody reads it", process.stderr.read())
            self.assertEqual(process.wait(timeout=tool.SECONDS_MAX), 2)
        self.assertLess(time.monotonic() - begin, 30)

    def test_pipes_that_nobody_writes(self):
        """Whatever reads a pipe says so at once instead of waiting."""
        os.mkfifo(self.path("pipe"))
        for arguments, why in ((run("--input", "pipe", question=SMALL), "a pipe, not a regular file"),
                               (("plan", *SMALL, "--machine", "pipe"), "a pipe that nobody writes"),
                               (("plan", *SMALL, "--first", "pipe"), "a pipe that nobody writes"),
                               (("plan", "--list", "pipe"), "a pipe that nobody writes"),
                               (run("--list", "pipe", question=()), "a pipe that nobody writes")):
            with self.subTest(arguments=arguments):
                ran = tool.reshard(*arguments, folder=self.folder, timeout=10)
                self.assertEqual((ran.code, ran.out), (2, ""))
                self.assertIn("cannot read 'pipe': " + why, ran.err)

    def test_pipes_that_somebody_writes_late(self):
        """A machine, first steps and a list may come through pipes, as <(...) makes them."""
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
        """Another user: a file or folder that is read-only, or in a folder that is."""
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
        """More ranks, fewer ranks, an empty folder: the new set and nothing else."""
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

    def test_two_runs_into_one_folder(self):
        """Either set, whole: of other sizes, so that a mixture would be seen."""
        others = run("--tiles", "new", question=("--mesh", "x=6", "f32[6@x]", "f32[6]"))
        either = [self.new("--tiles")]
        self.ran_well(tool.reshard(*others, folder=self.folder))
        either.append(state(self.path("new")))
        for there in (True, False):
            if not there:
                shutil.rmtree(self.path("new"))
            both = [subprocess.Popen([tool.TOOL, *one], cwd=self.folder, stdout=subprocess.DEVNULL)
                    for one in (WRITERS["--tiles"], others)]
            self.assertEqual([process.wait(timeout=tool.SECONDS_MAX) for process in both], [0, 0])
            self.assertIn(state(self.path("new")), either)
            self.assertEqual(os.listdir(self.folder), ["new"])

    def test_trailing_slashes(self):
        for _ in range(2):
            self.ran_well(tool.reshard(*run("--tiles", "new//"), folder=self.folder))
        self.assertTrue(self.check("--tiles", None))

    def test_input_that_shrinks_is_an_error(self):
        """No crash, whatever a file does while it is read."""
        elements = bytes(1 << 22)
        header = "{'descr': '|u1', 'fortran_order': False, 'shape': (4194304,), }".ljust(117) + "\n"
        with open(self.path("in.npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + elements)
        command = [tool.TOOL, *run("--input", "in.npy", "--output", "new",
                                   question=("--mesh", "x=4", "u8[4194304@x]", "u8[4194304]"))]
        for _ in range(10 if LONG else 3):
            with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                time.sleep(self.random.random() * 0.05)
                os.truncate(self.path("in.npy"), 1 << 16)
                process.stderr.read()
                self.assertIn(process.wait(timeout=tool.SECONDS_MAX), (0, 2))
            os.truncate(self.path("in.npy"), (1 << 22) + 128)


class OldFileSystem(WholeOrAbsent):
    """Files have names while they are written, which signals remove; a folder is moved aside for another."""

    before_run = staticmethod(on_an_old_file_system)

    def setUp(self):
        super().setUp()
        try:
            subprocess.run(["true"], preexec_fn=on_an_old_file_system, check=True)
        except (OSError, subprocess.SubprocessError):
            self.skipTest("may not filter calls here")

    def test_it_is_old(self):
        """Else nothing was tried here."""
        script = "import os\ntry: os.open('.', os.O_WRONLY | os.O_TMPFILE)\nexcept OSError as e: print(e.errno)"
        done = subprocess.run([sys.executable, "-c", script], cwd=self.folder, capture_output=True,
                              preexec_fn=on_an_old_file_system)
        self.assertEqual(done.stdout.decode().strip(), str(errno.EOPNOTSUPP))

    def test_replaced(self):
        for writer in ("--output", "--tiles"):
            for there in (True, False):
                self.setUp()
                before = self.before(writer, there)
                done = subprocess.run([tool.TOOL, *WRITERS[writer]], cwd=self.folder, capture_output=True,
                                      preexec_fn=on_an_old_file_system)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(self.check(writer, before))


@unittest.skipUnless(tool.MPIEXEC, "there is no MPI")
class Launched(WholeOrAbsent):
    """Ranks that are processes: one name for what they all write. Where KILL does not hit rank 0 it is removed too."""

    def ranks_of(self, launcher):
        found = []
        for status in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError), open(status, encoding="utf-8", errors="replace") as file:
                name, after = re.fullmatch(r"\d+ \((.*)\) \w (\d+) .*\n", file.read(), re.S).groups()
                if int(after) == launcher and name == "reshard":
                    pid = status.split("/")[2]
                    with open("/proc/%s/environ" % pid, "rb") as file:
                        rank = re.search(rb"\0(?:OMPI_COMM_WORLD|PMI)_RANK=(\d+)", file.read())
                    found.append((int(rank.group(1)) if rank else len(found), int(pid)))
        return [pid for _, pid in sorted(found)]

    def strike(self, arguments, number, whom):
        command = [tool.MPIEXEC, "-n", "4", tool.TOOL, *[word for word in arguments if word not in ("--backend", "local")]]
        # Open MPI ends the other ranks by TERM, and by KILL a second later, which a loaded machine may not leave them.
        # It sleeps for all of that time, whenever they end.
        environment = dict(os.environ, OMPI_MCA_odls_base_sigkill_timeout="4")
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=environment) as process:
            while process.poll() is None and not glob.glob(self.path("reshard-*.partial")):
                time.sleep(0.001)
            ranks = self.ranks_of(process.pid)
            struck = process.poll() is None and (whom == "launcher" or len(ranks) == 4)
            if struck:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid if whom == "launcher" else ranks[whom], number)
            process.wait(timeout=tool.SECONDS_MAX)
            return struck and process.returncode != 0

    def test_signals(self):
        struck = 0
        everything = [(writer, number, whom) for writer in ("--output", "--tiles") for number in SIGNALS
                      for whom in ("launcher", 0, 1, 2, 3) if (number, whom) != (signal.SIGKILL, "launcher")]
        for writer, number, whom in everything if LONG else self.random.sample(everything, 4):
            self.setUp()
            with self.subTest(writer=writer, signal=number.name, whom=whom):
                before = self.before(writer, True)
                struck += self.strike(WRITERS[writer], number, whom)
                end = time.monotonic() + (0 if (number, whom) == (signal.SIGKILL, 0) else 10)
                while glob.glob(self.path("reshard-*.partial")) and time.monotonic() < end:
                    time.sleep(0.05)
                left = glob.glob(self.path("reshard-*.partial")) if (number, whom) == (signal.SIGKILL, 0) else ()
                self.check(writer, before, [os.path.basename(name) for name in left])
        self.assertGreater(struck, 0)


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


# What does not depend on what ranks are is tried once.
for name in dir(WholeOrAbsent):
    if name.startswith("test_") and name != "test_signals":
        setattr(Launched, name, None)
        setattr(OldFileSystem, name, None)


if __name__ == "__main__":
    print("RESHARD_SEED=%d" % SEED, file=sys.stderr)
    tool.main()
