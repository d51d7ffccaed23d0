"""Attacks each writer of files in each way. Afterwards the given name holds all of the new contents or exactly the old ones,
and nothing else is left. Only KILL may leave reshard-*.partial, which harms no later run."""

import contextlib
import ctypes
import errno
import glob
import os
import platform
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import npy_file
import tool
from written import LONG, SEED, WRITERS, Written, run, state

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals(Written):
    """An attack while a file is unfinished."""

    before_run = None  # in the child

    def struck(self, arguments, number, delay):
        """Runs the tool, and sends the signal a moment after an unfinished file is seen. True if one was seen."""
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
                            if left:  # the rest harms no later run
                                self.ran_well(tool.reshard(*arguments, folder=self.folder))
            if writer != "calibrate --output":  # it is written too quickly to be seen
                self.assertGreater(struck, 0, "no signal met anything unfinished")


class WholeOrAbsent(Written):
    def test_both_at_once(self):
        """--tiles and --output of one run get their names when both are whole. If one fails, both stay unchanged."""
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
        """A separate file system; a machine file meets one without a free page."""
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
        """A newly opened file must not become stdout, or the report would go into it."""

        def closed():
            os.closerange(0, 3)

        npy_file.write(self.path("in.npy"), "<i4", (64, 64), {(i, j): b"abcd" for i in range(64) for j in range(64)})
        question = ("--mesh", "x=2", "i32[64@x,64]", "i32[64,64@x]")
        self.ran_well(tool.reshard(*run("--input", "in.npy", "--output", "right", question=question), folder=self.folder))
        done = subprocess.run([tool.TOOL, *run("--input", "in.npy", "--output", "new", question=question)],
                              cwd=self.folder, preexec_fn=closed)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(state(self.path("new")), state(self.path("right")))

    def test_two_runs_into_one_folder(self):
        """Either set of tiles, whole. The sets have different sizes, so a mixture would be seen."""
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

    def test_input_that_shrinks_is_an_error(self):
        """The tool does not crash, whatever happens to a file while it is read."""
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


def on_an_old_file_system():
    """In a child process: a filter makes two calls fail, as if files needed names and folders could not be exchanged."""
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


class OldFileSystem(Signals):
    """Files have names while they are written, and signals remove them. A folder is moved aside for another."""

    before_run = staticmethod(on_an_old_file_system)

    def setUp(self):
        super().setUp()
        try:
            subprocess.run(["true"], preexec_fn=on_an_old_file_system, check=True)
        except (OSError, subprocess.SubprocessError):
            self.skipTest("may not filter calls here")

    def test_it_is_old(self):
        """Checks that the filter works; otherwise this class would test nothing."""
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
class Launched(Written):
    """Ranks as processes write under one name. If KILL does not hit rank 0, the name is removed too."""

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
        # Open MPI ends the other ranks with TERM, and with KILL a second later, which may be too soon on a loaded machine.
        # It sleeps for the whole second, even if they end earlier.
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


if __name__ == "__main__":
    print("RESHARD_SEED=%d" % SEED, file=sys.stderr)
    tool.main()
