"""reshard.live with arrays that know their sharding: jax.Arrays of one and of several processes, and DTensors on a stub of
torch's names, which needs no torch. With arguments this file is one process of a job of JAX."""

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import types
import unittest

import numpy

import reshard

ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[3]))
HANG = 240  # seconds, far above any wait that is right
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if sys.argv[1:2] not in (["trainer"], ["engine"]):
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
try:
    import jax
    from jax.sharding import NamedSharding, PartitionSpec
except ImportError:
    jax = None


def whole(version, dtype="f4", shape=(24, 16)):
    return (numpy.arange(numpy.prod(shape)).reshape(shape) % 251 + version).astype(dtype)


def placed(array, axes, *spec):
    """On the first devices of this host, or of all processes. axes: the sizes of x, y and so on."""
    devices = numpy.array(jax.devices()[:numpy.prod(axes)]).reshape(axes)
    sharding = NamedSharding(jax.sharding.Mesh(devices, tuple("xyz"[:len(axes)])), PartitionSpec(*spec))
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def like(array):
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding)


def trainer(coordinator, rank, endpoint):
    """One of two processes with three devices each. It commits until its parent ends it."""
    jax.distributed.initialize(coordinator, 2, int(rank))
    first = {"rows": placed(whole(0), (6,), "x"), "cell": placed(whole(0), (2, 3), "y", "x"),
             "same": placed(whole(0), (6,)), "one": placed(whole(0), (2, 3), "x")}
    with reshard.live.publish(jax, endpoint, first) as out:
        print(f"P{out.endpoint}", flush=True)
        for version in range(1, 1 << 30):
            out.commit(version, {name: placed(whole(version), tuple(array.sharding.mesh.devices.shape), *array.sharding.spec)
                                 for name, array in first.items()})
            if sys.stdin.readline() == "":
                return


def engine(coordinator, rank, endpoint):
    """One of three processes with two devices each. It compares two versions."""
    jax.distributed.initialize(coordinator, 3, int(rank))
    wanted = {"cell": placed(whole(0), (6,), None, ()), "rows": placed(whole(0), (3, 2), "y", ()),
              "one": placed(whole(0), (3, 2), "x", "y"), "same": placed(whole(0), (6,), "x")}
    with reshard.live.subscribe(jax, endpoint, {name: like(array) for name, array in wanted.items()}) as into:
        for _ in range(2):
            version = into.update(HANG)
            for name, array in wanted.items():
                assert into[name].sharding == array.sharding, name
                for shard in into[name].addressable_shards:
                    assert (numpy.asarray(shard.data) == whole(version)[shard.index]).all(), name
            print(f"V{version}", flush=True)


def said(process, kind):
    """The next line of a process that begins with `kind`. Gloo prints lines of its own."""
    for line in process.stdout:
        if line[0] == kind:
            return line[1:].strip()
    return ""


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.endpoint = f"{folder.name}/weights"

    def opened(self, opening):
        self.addCleanup(opening.close)
        return opening


@unittest.skipIf(jax is None, "no JAX")
class Jax(Folder):
    def test_any_sharding_to_any_other_in_one_process(self):
        ways = [((8,), ("x",)), ((4, 2), ("y", "x")), ((2, 2), (None, ("y", "x"))), ((2, 2, 2), ("z", "x")), ((1,), ()), ((4,), ())]
        for dtype in ("float32", "bfloat16", "int8"):
            arrays = {f"w{number}": placed(whole(0, dtype), axes, *spec) for number, (axes, spec) in enumerate(ways)}
            out = self.opened(reshard.live.publish(None, self.endpoint, {name: like(array) for name, array in arrays.items()}))
            turned = dict(zip(arrays, [*list(arrays.values())[1:], arrays["w0"]]))
            came = []
            into = self.opened(reshard.live.subscribe(None, self.endpoint, turned, arrived=lambda *got: came.append(got)))
            for version in (1, 2):
                out.commit(version, {name: placed(whole(version, dtype), *ways[number][:1], *ways[number][1])
                                     for number, name in enumerate(arrays)})
                came.clear()
                self.assertEqual(into.update(HANG), version)
                self.assertEqual([name for name, _ in came], list(turned))
                for name, array in turned.items():
                    got = into[name]
                    self.assertIs(got, into[name])
                    self.assertIs(got, dict(came)[name])
                    self.assertEqual((got.sharding, got.dtype), (array.sharding, array.dtype))
                    self.assertTrue((numpy.asarray(got) == whole(version, dtype)).all(), name)
            kept = into["w0"]
            for version in (3, 4):
                out.commit(version, {name: placed(whole(version, dtype), *ways[number][:1], *ways[number][1])
                                     for number, name in enumerate(arrays)})
                into.update(HANG)
            self.assertTrue((numpy.asarray(kept) == whole(2, dtype)).all())  # memory of its own
            self.assertEqual(out.staged_bytes, 0)
            out.close()

    def test_arrays_given_once_scalars_and_nothing(self):
        arrays = {"w": placed(whole(3), (8,), "x"), "scalar": placed(numpy.array(5, "i4"), (8,)),
                  "empty": placed(numpy.zeros((0, 8), "f4"), (8,), None, "x")}
        out = self.opened(reshard.live.publish(None, self.endpoint, arrays))
        self.assertEqual({name: str(one) for name, one in reshard.live.offered(self.endpoint).items()},
                         {"w": "f32[24,16]", "scalar": "i32[]", "empty": "f32[0,8]"})
        into = self.opened(reshard.live.subscribe(None, self.endpoint, {name: arrays[name] for name in ("empty", "scalar", "w")}))
        out.commit(1)
        into.update(HANG)
        for name, array in arrays.items():
            self.assertTrue((numpy.asarray(into[name]) == numpy.asarray(array)).all())
            self.assertEqual(into[name].shape, array.shape)

    def test_mistakes(self):
        array = placed(whole(0), (8,), "x")
        out = self.opened(reshard.live.publish(None, self.endpoint, {"w": like(array)}))
        self.assertRaisesRegex(reshard.InputError, "tensor w has no array", out.commit, 1)
        self.assertRaisesRegex(reshard.InputError, "`w`", out.commit, 1, {"w": numpy.zeros((24, 15), "f4")})
        for wrong in (placed(whole(0, "i4"), (8,), "x"), placed(whole(0, shape=(48, 16)), (8,), "x"), placed(whole(0)[:1], (1,))):
            self.assertRaisesRegex(reshard.InputError, "tensor w comes as .* it was published as float32", out.commit, 1, {"w": wrong})
        out.commit(1, {"w": whole(1)})  # the tile itself
        wide = jax.ShapeDtypeStruct((4,), numpy.dtype("f8"), sharding=jax.sharding.SingleDeviceSharding(jax.devices()[0]))
        other = self.opened(reshard.live.publish(None, self.endpoint + "2", {"w": wide}))
        other.commit(1, {"w": numpy.zeros(4, "f8")})
        into = self.opened(reshard.live.subscribe(None, self.endpoint + "2", {"w": wide}))
        into.update(HANG)
        self.assertRaisesRegex(reshard.InputError, "set jax_enable_x64", lambda: into["w"])

        def traced(value):
            reshard.live.publish(None, self.endpoint + "3", {"w": value})
        self.assertRaisesRegex(TypeError, "tensor w is traced", jax.jit(traced), array)

    def test_a_mistake_on_one_rank_is_an_error_on_all(self):
        array = placed(whole(0), (8,), "x")
        layout = reshard.parse_layout("x=2", "f32[24,16]")

        def body(rank, job):
            with self.assertRaises(reshard.Error) as raised:
                reshard.live.publish(job, self.endpoint, {"w": array if rank == 1 else (layout, whole(0))})
            return str(raised.exception)
        errors = ranks(2, body, self.folder)
        self.assertIn("is 0 in JAX and rank 1 of the job", errors[1])
        self.assertIn("rank 1 of the publisher", errors[0])

    def test_the_program_of_the_page(self):
        page = (ROOT / "docs/live.md").read_text(encoding="utf-8")
        text, = re.findall(r"^```python file=sharded.py\n(.*?)^```", page, re.S | re.M)
        printed, = re.findall(r"^```console\n\$ python sharded.py\n(.*?)^```", page, re.S | re.M)
        plain = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
        done = subprocess.run([sys.executable, "-B", "-c", text], cwd=self.folder, capture_output=True, text=True, check=False,
                              env=plain)
        self.assertEqual((done.stdout, done.returncode), (printed, 0), done.stderr)

    def test_jobs_of_several_processes(self):
        started = []

        def start(role, count, devices, endpoint):
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                port = one.getsockname()[1]
            flags = f"--xla_force_host_platform_device_count={devices}"
            for rank in range(count):
                started.append(subprocess.Popen(
                    [sys.executable, "-B", os.path.abspath(__file__), role, f"127.0.0.1:{port}", str(rank), endpoint],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "XLA_FLAGS": flags}))
            return started[-count:]
        try:
            for endpoint in (self.endpoint, "127.0.0.1:0"):
                trainers = start("trainer", 2, 3, endpoint)
                reached = said(trainers[0], "P")
                engines = start("engine", 3, 2, reached)
                self.assertEqual([said(one, "V") for one in engines], ["1"] * 3)
                for one in trainers:
                    one.stdin.write("\n")
                    one.stdin.flush()
                self.assertEqual([said(one, "V") for one in engines], ["2"] * 3)
                self.assertEqual([one.wait(HANG) for one in engines], [0] * 3)
        finally:
            for one in started:
                one.kill()
                one.communicate()


def ranks(count, body, folder):
    """Calls body(rank, job) on each thread of a job, and returns the results by rank."""
    results = [None] * count

    def run(rank):
        try:
            results[rank] = body(rank, reshard.live.join_group(f"{folder}/job{count}", rank, count))
        except BaseException as error:  # the test shows it
            results[rank] = error
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(HANG)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


class Tensor:
    """The part of a torch.Tensor that reshard.live touches."""

    def __init__(self, array, device="cpu"):
        self.values = array
        self.device = types.SimpleNamespace(type=device)
        self.shape = array.shape

    def detach(self):
        return self

    def cpu(self):
        return Tensor(self.values)

    def numel(self):
        return self.values.size

    def element_size(self):
        return self.values.itemsize

    def view(self, dtype):
        return Tensor(self.values.view(numpy.dtype(str(dtype).removeprefix("torch."))))

    def reshape(self, shape):
        return Tensor(self.values.reshape(shape))

    def to(self, device):
        return Tensor(self.values, device.type)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Torch(Folder):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "torch"))
        import stub
        torch = sys.modules["torch"]
        torch.from_numpy = Tensor

        class DTensor:
            def __init__(self, local, mesh, placements, shape):
                self.local = local
                self._spec = stub.DTensorSpec(mesh, tuple(placements), stub.TensorMeta(tuple(shape), (shape[-1], 1)))

            def to_local(self):
                return self.local

            @classmethod
            def from_local(cls, local, mesh, placements, *, run_check, shape, stride):
                assert run_check is False and stride == (shape[-1], 1)
                return cls(local, mesh, placements, shape)
        sys.modules["torch.distributed.tensor"].DTensor = cls.DTensor = DTensor
        cls.stub = stub
        import reshard.torch  # noqa: F401

    def dtensor(self, mesh, placements, array, rank, device="cpu"):
        layout = reshard.Layout.from_placements(reshard.Mesh([(f"d{axis}", mesh.size(axis)) for axis in range(mesh.ndim)]),
                                                "f32", array.shape, placements)
        return self.DTensor(Tensor(reshard.split(array, layout)[rank], device), mesh, placements, array.shape)

    def test_dtensors_of_two_meshes(self):
        stub, shape = self.stub, (7, 6)  # 7 rows on 4 ranks: 2, 2, 2, 1
        fsdp, tp, grid = stub.DeviceMesh(4), stub.DeviceMesh(3), stub.DeviceMesh(2, 2)
        R, S = stub.Replicate(), stub.Shard
        seen = threading.Barrier(7, timeout=HANG)

        def train(rank, job):
            first = {"a": self.dtensor(fsdp, [S(0)], whole(0, shape=shape), rank, "cuda"),
                     "b": self.dtensor(grid, [R, S(1)], whole(0, shape=shape), rank)}
            with reshard.live.publish(job, self.endpoint, first) as out:
                seen.wait()
                for version in (1, 2):
                    out.commit(version, {"a": self.dtensor(fsdp, [S(0)], whole(version, shape=shape), rank, "cuda"),
                                         "b": self.dtensor(grid, [R, S(1)], whole(version, shape=shape), rank)})
                    self.assertEqual(out.staged_bytes, first["a"].local.values.nbytes)
                    seen.wait()
                with self.assertRaisesRegex(reshard.Error, "it was published as"):
                    out.commit(3, {"a": self.dtensor(fsdp, [S(1)], whole(3, shape=shape), rank)})
                seen.wait()

        def serve(rank, job):
            wanted = {"b": self.dtensor(tp, [S(0)], whole(0, shape=shape), rank),
                      "a": self.dtensor(tp, [S(1)], whole(0, shape=shape), rank, "cuda")}
            seen.wait()
            with reshard.live.subscribe(job, self.endpoint, wanted) as into:
                for version in (1, 2):
                    seen.wait()
                    while into.version < version:
                        into.update(HANG)
                    for name, array in wanted.items():
                        right = self.dtensor(tp, array._spec.placements, whole(into.version, shape=shape), rank)
                        self.assertEqual(into[name]._spec, array._spec)
                        self.assertEqual(into[name].local.device.type, array.local.device.type)
                        self.assertTrue((into[name].local.values == right.local.values).all())
                seen.wait()
        self.together((4, train), (3, serve))

    def together(self, *jobs):
        failed = []

        def run(count, body):
            try:
                ranks(count, body, self.folder)
            except BaseException as error:  # the test shows it
                failed.append(error)
        threads = [threading.Thread(target=run, args=job) for job in jobs]
        for one in threads:
            one.start()
        for one in threads:
            one.join(2 * HANG)
        if failed:
            raise failed[0]

    def test_sums_and_strangers_are_refused(self):
        stub = self.stub
        value = self.DTensor(Tensor(whole(0)), stub.DeviceMesh(2), [stub.Partial()], (24, 16))
        self.assertRaisesRegex(reshard.UnsupportedError, "unreduced axes", reshard.live.publish, None, self.endpoint, {"w": value})
        value = self.DTensor(Tensor(whole(0)), stub.DeviceMesh(2), [stub.Shard(0)], (24, 16))
        self.assertRaisesRegex(reshard.InputError, "this job has 1 ranks", reshard.live.publish, None, self.endpoint, {"w": value})

    def test_a_process_group_is_a_job(self):
        dist = sys.modules["torch.distributed"]
        texts, ready = {}, threading.Event()

        class ProcessGroup:
            members = [4, 2]

        local = threading.local()

        def broadcast_object_list(box, src, group):
            self.assertEqual(src, 4 if group else 0)
            if local.rank == 0:
                texts["it"] = box[0]
                ready.set()
            self.assertTrue(ready.wait(HANG))
            box[0] = texts["it"]
        names = {"ProcessGroup": ProcessGroup, "get_process_group_ranks": lambda group: group.members, "get_rank": lambda group:
                 local.rank, "get_world_size": lambda: 2, "broadcast_object_list": broadcast_object_list}
        kept = {name: getattr(dist, name) for name in names if hasattr(dist, name)}
        vars(dist).update(names)
        try:
            for job in (ProcessGroup(), dist):
                ready.clear()
                mesh = self.stub.DeviceMesh(2)
                if job is not dist:
                    mesh.mesh = numpy.array([2, 4])  # rank 2 of torch is rank 1 of the job
                endpoint = f"{self.folder}/{type(job).__name__}"

                def body(rank, _, job=job, mesh=mesh, endpoint=endpoint):
                    local.rank = rank
                    place = rank if job is dist else 1 - rank
                    array = self.DTensor(Tensor(whole(1)[12 * place:12 * place + 12]), mesh, [self.stub.Shard(0)], (24, 16))
                    with reshard.live.publish(job, endpoint, {"w": array}) as out:
                        out.commit(1)
                        if rank == 0:
                            one = reshard.parse_layout("x=1", "f32[24,16]")
                            with reshard.live.subscribe(None, endpoint, {"w": one}) as into:
                                into.update(HANG)
                                self.assertTrue((into["w"] == whole(1)).all())
                        barrier.wait()
                barrier = threading.Barrier(2, timeout=HANG)
                with tempfile.TemporaryDirectory() as folder:
                    ranks(2, body, folder)
            stranger = self.DTensor(Tensor(whole(1)), self.stub.DeviceMesh(1), [self.stub.Replicate()], (24, 16))
            self.assertRaisesRegex(reshard.InputError, "on rank 0 of torch, which is not in this job", self.publish_at, 4, stranger,
                                   ProcessGroup, local)
        finally:
            vars(dist).update(kept)
            for name in set(names) - set(kept):
                delattr(dist, name)

    def publish_at(self, member, tensor, group, local):
        local.rank = 0
        alone = group()
        alone.members = [member]
        with contextlib.closing(reshard.live.publish(alone, self.endpoint, {"w": tensor})):
            pass


if __name__ == "__main__":
    roles = {"trainer": trainer, "engine": engine}
    if sys.argv[1:2] and sys.argv[1] in roles:
        roles[sys.argv[1]](*sys.argv[2:])
    elif not reshard.live.available():
        print("skipped: reshard.live needs Linux")
        sys.exit(77)
    else:
        unittest.main()
