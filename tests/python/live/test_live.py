"""reshard.live: values, errors, processes that are killed, jobs of MPI, and the programs of docs/live.md. With arguments this
file is one process of a job: it reports lines, and its parent reads them."""

import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy

import reshard

ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[3]))
PAGE = (ROOT / "docs/live.md").read_text(encoding="utf-8")
MPIEXEC = os.environ.get("RESHARD_MPIEXEC", "")
HANG = 240  # seconds, far above any wait that is right
SOURCE = reshard.parse_layout("x=2", "i64[60@x,40]")
TCP = "127.0.0.1:0"  # a free port
TARGET = reshard.parse_layout("x=3", "i64[60,40@x]")


def whole(version):
    return numpy.arange(60 * 40, dtype="i8").reshape(60, 40) + 100000 * version


def say(line):
    os.write(1, (line + "\n").encode())


def trainer(folder, rank, ranks, endpoint):
    """Commits versions until an error, and then stays connected. ranks: "mpi" for a communicator."""
    if ranks == "mpi":
        from mpi4py import MPI
        job, rank = MPI.COMM_WORLD, MPI.COMM_WORLD.rank
    else:
        job = reshard.live.join_group(f"{folder}/trainer", int(rank), int(ranks))
        rank = int(rank)
    with reshard.live.publish(job, endpoint, {"w": SOURCE}) as out:
        say(f"P{out.endpoint}")
        version = 0
        try:
            while True:
                version += 1
                out.commit(version, {"w": reshard.split(whole(version), SOURCE)[rank]})
                say(f"C{version}")
                time.sleep(0.005)  # leaves the processor to others
        except reshard.Error as error:
            say(f"E{error}")
            time.sleep(10 * HANG)  # an engine that is late must see one trainer leave, and not two


def engine(folder, rank, ranks, endpoint):
    """Takes versions until an error, and compares all elements."""
    rank = int(rank)
    job = reshard.live.join_group(f"{folder}/engine", rank, int(ranks))
    with reshard.live.subscribe(job, endpoint, {"w": TARGET}) as into:
        try:
            while True:
                version = into.update(HANG)
                if not (into["w"] == reshard.split(whole(version), TARGET)[rank]).all():
                    say("W: wrong elements")
                say(f"V{version}")
        except reshard.BackendError as error:
            say(f"E{error}")
            say(f"S{into.version}")


def waiter(folder, rank, ranks):
    """Waits for a version that does not come, until Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    job = reshard.live.join_group(f"{folder}/engine", int(rank), int(ranks))
    with reshard.live.subscribe(job, f"{folder}/weights", {"w": TARGET}) as into:
        try:
            say("R")  # the signal may come before the wait
            into.update()
        except KeyboardInterrupt:
            say("EKeyboardInterrupt")
        except reshard.BackendError as error:
            say(f"E{error}")


def wrong(folder, rank, ranks):
    """Publishes or commits an array of another shape on rank 1."""
    job = reshard.live.join_group(f"{folder}/trainer", int(rank), int(ranks))
    right = numpy.zeros((30, 40), "i8")
    try:
        reshard.live.publish(job, f"{folder}/bad", {"w": (SOURCE, right[:, :39] if rank == "1" else right)})
    except reshard.Error as error:
        say(f"P{error}")
    with reshard.live.publish(job, f"{folder}/good", {"w": (SOURCE, right)}) as out:
        try:
            reshard.live.subscribe(job, f"{folder}/good", {"w": 3} if rank == "1" else {"w": SOURCE})
        except (reshard.Error, TypeError) as error:
            say(f"S{error}")
        try:
            out.commit(1, {"v": right} if rank == "1" else {})
        except reshard.Error as error:
            say(f"C{error}")
        out.commit(2)
        say(f"N{out.newest}")


class Process:
    """A process of a job, or several under mpirun."""

    def __init__(self, *arguments, before=()):
        self.process = subprocess.Popen([*before, sys.executable, "-B", os.path.abspath(__file__), *map(str, arguments)],
                                        stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ))  # not what MPI has put into this process
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def next(self, kind):
        """The next line that begins with `kind`. Empty: the process has ended, or hangs."""
        end = time.monotonic() + HANG
        while time.monotonic() < end:
            try:
                line = self.lines.get(timeout=1)
            except queue.Empty:
                continue
            if line is None:
                return ""
            if line[:1] == "W":
                raise AssertionError(line)
            if line[:1] == kind:
                return line[1:]
        return ""

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Jobs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, role, ranks, *more):
        started = [Process(role, self.folder, rank, ranks, *more) for rank in range(ranks)]
        for one in started:
            self.addCleanup(one.end)
        return started

    def jobs(self, endpoint):
        """A trainer of 2 ranks and an engine of 3."""
        trainers = self.start("trainer", 2, endpoint)
        self.endpoint = trainers[0].next("P")
        return trainers, self.start("engine", 3, self.endpoint)

    def test_an_engine_is_killed_and_the_trainer_goes_on(self):
        trainers, engines = self.jobs(f"{self.folder}/weights")
        self.assertNotEqual(engines[0].next("V"), "")
        engines[2].process.kill()
        versions = set()
        for one in engines[:2]:
            self.assertIn("rank 2 of this job is lost", one.next("E"))
            versions.add(one.next("S"))
        self.assertEqual(len(versions - {"0"}), len(versions - {"0", ""}))
        self.assertLessEqual(len(versions - {"0"}), 1)
        for one in trainers:
            for _ in range(3):
                self.assertNotEqual(one.next("C"), "")
        for one in self.start("engine", 3, self.endpoint):  # a new engine
            self.assertNotEqual(one.next("V"), "")

    def test_a_trainer_is_killed_and_all_learn_it(self):
        self.kill_a_trainer(f"{self.folder}/weights")

    def test_a_trainer_over_tcp_is_killed_and_all_learn_it(self):
        self.kill_a_trainer(TCP)

    def kill_a_trainer(self, endpoint):
        trainers, engines = self.jobs(endpoint)
        self.assertNotEqual(engines[1].next("V"), "")
        trainers[1].process.kill()
        versions = set()
        for one in engines:
            self.assertIn("rank 1 of the publisher is lost", one.next("E"))
            versions.add(one.next("S"))
        self.assertEqual(len(versions), 1)
        self.assertNotIn("0", versions)
        self.assertIn("rank 1 of this job is lost", trainers[0].next("E"))

    def test_a_job_of_mpi_and_one_without(self):
        if not (MPIEXEC and reshard.mpi.available()):
            self.skipTest("no MPI, or no mpi4py on it")
        trainers = Process("trainer", self.folder, 0, "mpi", TCP, before=(MPIEXEC, "-n", "2"))
        self.addCleanup(trainers.end)
        for one in self.start("engine", 3, trainers.next("P")):
            for _ in range(2):
                self.assertNotEqual(one.next("V"), "")
        self.assertNotEqual(trainers.next("C"), "")

    def test_ctrl_c_ends_a_wait(self):
        with_none = reshard.live.publish(None, f"{self.folder}/weights", {"w": reshard.parse_layout("x=1", "i64[60,40@x]")})
        self.addCleanup(with_none.close)
        waiters = self.start("waiter", 3)
        for one in waiters:
            one.next("R")
        waiters[1].process.send_signal(signal.SIGINT)
        self.assertEqual(waiters[1].next("E"), "KeyboardInterrupt")
        for one in (waiters[0], waiters[2]):
            self.assertIn("rank 1 of this job is lost", one.next("E"))

    def test_a_mistake_on_one_rank_is_an_error_on_all(self):
        ranks = self.start("wrong", 2)
        for kind, mine in (("P", "w"), ("S", "a wanted tensor is a Layout"), ("C", "there is no tensor v")):
            theirs = ranks[0].next(kind)
            self.assertIn("rank 1 of the", theirs)
            self.assertIn(mine, ranks[1].next(kind))
        for one in ranks:
            self.assertEqual(one.next("N"), "2")

    def programs(self, page, jobs):
        """Runs the programs of a page: (file, ranks, whether it ends) in `jobs`. Returns what the ranks of each have said."""
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        blocks = dict(re.findall(r"^```python file=(\S+)\n(.*?)^```", text, re.S | re.M))
        for name, block in blocks.items():
            pathlib.Path(self.folder, name).write_text(block, encoding="utf-8")
        started = [[subprocess.Popen([sys.executable, "-B", name, str(rank)], cwd=self.folder, stdout=subprocess.PIPE, text=True)
                    for rank in range(ranks)] for name, ranks, _ in jobs]
        try:
            said = [[one.communicate(timeout=HANG)[0] for one in ranks] for ranks, (*_, ends) in zip(started, jobs) if ends]
            codes = [one.returncode for ranks, (*_, ends) in zip(started, jobs) for one in ranks if ends]
            self.assertEqual(set(codes), {0})
        finally:
            for one in sum(started, []):
                one.kill()
                one.communicate()
        printed, = re.findall(r"^```console\n\$ for [^\n]*%s[^\n]*\n(.*?)^```" % jobs[-1][0], text, re.S | re.M)
        return list(blocks), said, printed

    def test_the_page(self):
        blocks, (said,), printed = self.programs("live.md", [("trainer.py", 2, False), ("engine.py", 3, True)])
        self.assertEqual(blocks, ["trainer.py", "engine.py", "sharded.py", "rules.py"])
        number = re.compile(r"\d+")
        self.assertEqual(number.sub("N", said[0]), number.sub("N", printed))
        self.assertEqual(said[1:], ["", ""])

    def test_the_coupled_codes_of_the_page(self):
        blocks, (sea, air), printed = self.programs("coupled.md", [("sea.py", 3, True), ("air.py", 2, True)])
        self.assertEqual(blocks, ["air.py", "sea.py"])
        self.assertEqual(sea, ["", "", ""])
        self.assertEqual("".join(air), printed)


class OneProcess(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.endpoint = f"{folder.name}/weights"

    def publish(self, tensors, **options):
        out = reshard.live.publish(None, self.endpoint, tensors, **options)
        self.addCleanup(out.close)
        return out

    def subscribe(self, tensors, **options):
        into = reshard.live.subscribe(None, self.endpoint, tensors, **options)
        self.addCleanup(into.close)
        return into

    def test_every_element_type(self):
        types = [row["name"] for row in reshard.dtypes.ROWS]
        layouts = {name: reshard.parse_layout("x=1", f"{name}[5,3]") for name in types}
        random = numpy.random.default_rng(1)
        arrays = {}
        for name, layout in layouts.items():
            size = layout.numpy_dtype.itemsize
            raw = random.integers(0, 2 if name in ("bool", "pred") else 256, 15 * size, dtype="u1")
            arrays[name] = raw.view(layout.numpy_dtype).reshape(5, 3)
        out = self.publish({name: (layouts[name], arrays[name]) for name in types})
        out.commit(1)
        into = self.subscribe(layouts)
        self.assertEqual(into.update(HANG), 1)
        for name in types:
            self.assertEqual(into[name].tobytes(), arrays[name].tobytes(), name)
            self.assertEqual(into[name].dtype, arrays[name].dtype)
        self.assertEqual(list(into), types)

    def test_the_rules_of_the_page(self):
        text, = re.findall(r"^```python file=rules.py\n(.*?)^```", PAGE, re.S | re.M)
        printed, = re.findall(r"^```console\n\$ python rules.py\n(.*?)^```", PAGE, re.S | re.M)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", "-c", text], cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr), (printed, ""))

    def test_arrays_of_each_version(self):
        layout, scalar, empty = (reshard.parse_layout("x=1", f"f32[{shape}]") for shape in ("6,4", "", "0,4"))
        fixed = numpy.arange(24, dtype="f4").reshape(6, 4)
        out = self.publish({"fixed": (layout, fixed), "new": layout, "scalar": scalar, "empty": empty})
        into = self.subscribe({"empty": empty, "new": layout, "fixed": layout, "scalar": scalar})
        self.assertIsNone(into.poll())
        self.assertEqual((into.version, out.newest, out.subscriber_count), (0, 0, 1))
        zeros = numpy.zeros((0, 4), "f4")
        for version in (1, 5, 6):
            turned = numpy.full((4, 6), version, "f4").T  # not dense
            fixed += 1
            out.commit(version, {"new": turned, "scalar": numpy.array(version, "f4"), "empty": zeros})
            self.assertEqual(into.update(HANG), version)
            self.assertTrue((into["new"] == version).all())
            self.assertTrue((into["fixed"] == fixed).all())
            self.assertEqual((into["scalar"].shape, into["scalar"][()], into["empty"].shape), ((), version, (0, 4)))
        self.assertFalse(into["new"].flags.writeable)
        self.assertRaisesRegex(reshard.BackendError, "no newer version than 6 within 50 ms", into.update, 0.05)

    def test_rules_at_both_ends(self):
        q = [numpy.arange(48, dtype="f4").reshape(8, 6) + 100 * layer for layer in range(2)]
        norm = numpy.ones(6, "f4")
        out = self.publish({"l.0.q": q[0], "l.1.q": q[1], "norm": norm}, rules="source one=1\notherwise = -", cast="bf16")
        out.commit(1)
        self.assertEqual({name: str(layout) for name, layout in reshard.live.offered(self.endpoint).items()},
                         {"l.0.q": "bf16[8,6]", "l.1.q": "bf16[8,6]", "norm": "bf16[6]"})
        into = self.subscribe(None, rules="target one=1\nlayers.{n}.query = - <- l.{n}.q\ndrop norm")
        self.assertEqual(list(into), ["layers.0.query", "layers.1.query"])
        self.assertEqual(into.layouts["layers.1.query"], reshard.parse_layout("one=1", "bf16[8,6]"))
        q[1] += 1
        out.commit(2)
        self.assertEqual(into.update(HANG), 2)
        for layer in range(2):
            self.assertTrue((into[f"layers.{layer}.query"].astype("f4") == q[layer]).all())
        into = self.subscribe(None, rules="target one=1\nboth = - <- l.0.q + l.1.q\ndrop norm")
        self.assertEqual(into.update(HANG), 2)
        self.assertTrue((into["both"].astype("f4") == numpy.concatenate(q)).all())
        self.assertRaisesRegex(TypeError, "either a dict of tensors or rules", self.subscribe, None)
        self.assertRaisesRegex(TypeError, "either a dict of tensors or rules", self.subscribe, {}, rules="target one=1")

    def test_casts(self):
        layouts = {name: reshard.parse_layout("x=1", f"{name}[4]") for name in ("f32", "f64", "i32")}
        arrays = {"f32": numpy.array([1, 1.00390625, -3e38, 2], "f4"), "f64": numpy.arange(4, dtype="f8"),
                  "i32": numpy.arange(4, dtype="i4")}
        out = self.publish({name: (layouts[name], arrays[name]) for name in layouts}, cast="bf16")
        out.commit(1)
        wanted = {name: reshard.parse_layout("x=1", f"{'i32' if name == 'i32' else 'bf16'}[4]") for name in layouts}
        into = self.subscribe(wanted)
        into.update(HANG)
        for name in layouts:
            self.assertEqual(into[name].tobytes(), arrays[name].astype(wanted[name].numpy_dtype).tobytes(), name)
        out.close()
        out = self.publish({name: (layouts[name], arrays[name]) for name in layouts}, cast={"i32": "i64"})
        self.assertEqual([str(one) for one in reshard.live.offered(self.endpoint).values()], ["f32[4]", "f64[4]", "i64[4]"])
        out.close()
        self.assertRaisesRegex(reshard.InputError, "names a tensor that is not published", self.publish,
                               {"f32": layouts["f32"]}, cast={"w": "bf16"})
        self.assertRaisesRegex(reshard.UnsupportedError, "cannot be cast to i8", self.publish, {"i32": layouts["i32"]},
                               cast={"i32": "i8"})

    def test_arrays_as_they_come(self):
        layouts = {name: reshard.parse_layout("x=1", f"i32[{size}]") for name, size in (("b", 100000), ("a", 0), ("c", 5))}
        out = self.publish({name: layouts[name] for name in "abc"}, bytes_per_second=10**9)
        came, told = [], []

        def arrived(name, array):
            came.append(name)
            self.assertTrue((array == version).all())
            self.assertEqual(array.shape, layouts[name].tile_shape(0))

        into = self.subscribe(layouts, arrived=arrived, progress=lambda *bytes_: told.append(bytes_))
        for version in (1, 2):
            out.commit(version, {name: numpy.full(layouts[name].tile_shape(0), version, "i4") for name in "abc"})
            came.clear()
            self.assertEqual(into.update(HANG), version)
            self.assertEqual(came, ["b", "a", "c"])
            self.assertEqual(told[-1], (400020, 400020))
        into.close()

        def broken(*_):
            raise ZeroDivisionError("no room")
        into = self.subscribe(layouts, arrived=broken)
        self.assertRaisesRegex(ZeroDivisionError, "no room", into.update, HANG)
        self.assertEqual(into.version, 2)
        self.assertRaisesRegex(reshard.InputError, "a limit of -1 bytes per second", self.publish, layouts, bytes_per_second=-1)
        self.assertRaisesRegex(reshard.InputError, "a limit of 1000 bytes of memory; wanted", self.publish, layouts, memory_bytes=1000)

    def test_updates_in_place(self):
        layout = reshard.parse_layout("x=1", "i32[10]")
        out = self.publish({"w": layout})
        into = self.subscribe({"w": layout}, in_place=True)
        seen = None
        for version in (1, 2, 3):
            out.commit(version, {"w": numpy.full(10, version, "i4")})
            self.assertEqual(into.update(HANG), version)
            seen = into["w"] if seen is None else seen
            self.assertTrue((into["w"] == version).all() and (seen == version).all())

    def test_status(self):
        layout = reshard.parse_layout("x=1", "i32[10]")
        out = self.publish({"w": (layout, numpy.ones(10, "i4"))})
        out.commit(4)
        into = self.subscribe({"w": layout})
        into.update(HANG)
        rank, = reshard.live.status(self.endpoint)
        while rank.reads == 0:  # the publisher hears of the end of a read a little later
            rank, = reshard.live.status(self.endpoint)
        self.assertEqual((rank.newest, rank.tile_bytes, rank.versions), (4, 40, {4: "ready"}))
        reader, = rank.readers
        self.assertEqual((reader.peer, reader.reads, reader.last, reader.bytes), (f"process {os.getpid()}", 0, 4, 40))
        self.assertEqual(reader.transport, "memory")
        self.assertGreater(reader.seconds, 0)
        self.assertRaisesRegex(reshard.BackendError, "cannot connect to", reshard.live.status, self.endpoint + "x", 0)

    def test_arrays_of_jax(self):
        try:
            import jax.numpy as jnp
        except ImportError:
            self.skipTest("no JAX")
        layout = reshard.parse_layout("x=1", "bf16[6,4]")
        out, into = self.publish({"w": layout}), self.subscribe({"w": layout})
        for version in (1, 2):
            out.commit(version, {"w": jnp.full((6, 4), version, jnp.bfloat16)})
            self.assertEqual(into.update(HANG), version)
            self.assertTrue((into["w"].astype("f4") == version).all())

    def test_arrays_stay_after_all_else(self):
        layout = reshard.parse_layout("x=1", "i32[1000]")
        out = self.publish({"w": (layout, numpy.arange(1000, dtype="i4"))})
        out.commit(1)
        into = self.subscribe({"w": layout})
        into.update(HANG)
        array = into["w"]
        out.close()
        into.close()
        self.assertRaisesRegex(reshard.BackendError, "not connected; reconnect", into.update)
        self.assertEqual(into.version, 1)
        del into, out
        self.assertTrue((array == numpy.arange(1000)).all())

    def test_a_publisher_that_comes_again(self):
        layout = reshard.parse_layout("x=1", "i32[10]")
        out = self.publish({"w": (layout, numpy.ones(10, "i4"))})
        out.commit(3)
        into = self.subscribe({"w": layout}, connect_timeout=HANG)
        into.update(HANG)
        out.close()
        self.assertRaisesRegex(reshard.BackendError, "rank 0 of the publisher is lost", into.update, HANG)
        again = self.publish({"w": (layout, numpy.full(10, 2, "i4"))})
        again.commit(2)
        into.reconnect()
        self.assertIsNone(into.poll())  # never back
        again.commit(4)
        self.assertEqual(into.update(HANG), 4)
        self.assertTrue((into["w"] == 2).all())

    def test_mistakes(self):
        layout = reshard.parse_layout("x=1", "i32[10]")
        array = numpy.zeros(10, "i4")
        for wrong, kind, words in (({"w": 3}, TypeError, "a pair of a Layout"),
                                   ({"w": (layout, array[:9])}, reshard.InputError, "`w`"),
                                   ({"w": (layout, array.astype("f4"))}, reshard.InputError, "`w`"),
                                   ({}, reshard.InputError, "no tensors"),
                                   ({"a b": (layout, array)}, reshard.InputError, "a b")):
            with self.subTest(wrong):
                self.assertRaisesRegex(kind, words, self.publish, wrong)
        self.assertRaisesRegex(reshard.InputError, "a lease of 1 ms", self.publish, {"w": (layout, array)}, lease=0.001)
        self.assertRaisesRegex(reshard.InputError, "lease is nan", self.publish, {"w": layout}, lease=float("nan"))
        self.assertRaisesRegex(TypeError, "a job is None", reshard.live.publish, 3, self.endpoint, {"w": layout})
        self.assertRaisesRegex(reshard.InputError, "rank 2 of a group of 2", reshard.live.join_group, self.endpoint, 2, 2)
        out = self.publish({"w": layout})
        self.assertRaisesRegex(reshard.InputError, "tensor w has no array", out.commit, 1)
        out.commit(1, {"w": array})
        self.assertRaisesRegex(reshard.InputError, "versions must grow", out.commit, 1, {"w": array})
        self.assertRaisesRegex(reshard.BackendError, "cannot connect to", reshard.live.subscribe, None, self.endpoint + "x",
                               {"w": layout}, connect_timeout=0)
        self.assertRaisesRegex(reshard.Error, "no tensor v", self.subscribe, {"v": layout})
        into = self.subscribe({"w": layout})
        self.assertRaises(KeyError, lambda: into["v"])
        self.assertRaisesRegex(reshard.InputError, "no version yet", lambda: into["w"])
        out.close()
        self.assertRaisesRegex(reshard.InputError, "the publisher is closed", out.commit, 2, {"w": array})

    def test_a_broadcast_that_fails(self):
        def broken(_):
            raise ZeroDivisionError("no text")
        self.assertRaisesRegex(ZeroDivisionError, "no text", reshard.live.join_through, broken, 0, 2)
        self.assertEqual(reshard.live.join_through(lambda text: text, 0, 1).size, 1)

    def test_two_threads_on_one_job(self):
        layout = reshard.parse_layout("x=1", "i32[10]")
        out = self.publish({"w": (layout, numpy.ones(10, "i4"))})
        out.commit(1)
        said = []

        def poll():
            try:
                into.poll()
            except reshard.InputError as error:
                said.append(str(error))

        def arrived(*_):  # an update is under way
            other = threading.Thread(target=poll)
            other.start()
            other.join()
        into = self.subscribe({"w": layout}, arrived=arrived)
        self.assertEqual(into.update(HANG), 1)
        self.assertIn("another thread is in a call", " ".join(said))
        self.assertIsNone(into.poll())

    def test_a_forked_process_only_ends(self):
        layout = reshard.parse_layout("x=1", "i32[10]")
        out = self.publish({"w": (layout, numpy.ones(10, "i4"))})
        into = self.subscribe({"w": layout})
        child = os.fork()
        if child == 0:
            try:
                out.commit(1)
                os._exit(1)
            except reshard.InputError:
                del out, into
                os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        out.commit(1)
        self.assertEqual(into.update(HANG), 1)


if __name__ == "__main__":
    roles = {"trainer": trainer, "engine": engine, "waiter": waiter, "wrong": wrong}
    if sys.argv[1:2] and sys.argv[1] in roles:
        roles[sys.argv[1]](*sys.argv[2:])
    elif not reshard.live.available():
        print("skipped: reshard.live needs Linux")
        sys.exit(77)
    else:
        unittest.main()
