"""The tool under mpirun: one rank prints, each rank has its own tiles, and the files are the local backend's."""

import filecmp
import json
import os
import tempfile

import npy_file
import test_files
import tool


class Mpi(test_files.Files):
    """The file tests, on as many ranks as the mesh has devices."""

    ranks = 4

    def move(self, mesh, source, target, *more):
        devices = 1
        for part in mesh.split(","):
            devices *= int(part.split("=")[1])
        self.ranks = devices
        return super().move(mesh, source, target, *more)


class Sums(test_files.Sums):
    ranks = 8


class Launched(tool.Case):
    QUESTION = ("--mesh", "x=2,y=2", "f32[64@x,64]", "f32[64,64@(y,x)]")

    def test_one_voice(self):
        ran = self.ran_well(tool.reshard("run", *self.QUESTION, ranks=4))
        self.assertEqual(ran.out.count("wrong 0 of 4096"), 1)
        self.assertIn("mpi", ran.out)
        ran = self.ran_well(tool.reshard("plan", *self.QUESTION, ranks=4))
        self.assertEqual(ran.out.count("checked"), 1)
        ran = tool.reshard("plan", "--mesh", "x=2", "f32[4@z]", "f32[4]", ranks=4)
        self.assertEqual(ran.code, 2)
        self.assertEqual(ran.err.count("no axis z"), 1)

    def test_a_timeout_is_taken(self):
        ran = self.ran_well(tool.reshard("run", "--timeout", "20", *self.QUESTION, ranks=4))
        self.assertEqual(ran.out.count("wrong 0 of 4096"), 1)

    def test_the_voice_is_heard(self):
        """The launcher ends the job at the first rank that fails. Here the rank that prints is late."""
        late = 'test "${OMPI_COMM_WORLD_RANK:-0}" != 0 || sleep 1; exec "$@"'
        alone = 'test "${OMPI_COMM_WORLD_RANK:-0}" = 2 && exec "$@"; sleep 60'
        for script in (late, alone):
            ran = tool.launched(4, "sh", "-c", script, "sh", tool.TOOL, "plan", "--mesh", "x=2", "f32[4@z]", "f32[4]")
            self.assertEqual(ran.code, 2)
            self.assertEqual(ran.err.count("no axis z"), 1)

    def test_more_ranks_than_devices(self):
        self.ran_well(tool.reshard("run", *self.QUESTION, "--output", "mpi.npy", "--tiles", "mpi", ranks=6,
                                   folder=self.folder))
        self.ran_well(tool.reshard("run", *self.QUESTION, "--output", "local.npy", "--tiles", "local",
                                   folder=self.folder))
        self.assertTrue(filecmp.cmp(self.path("mpi.npy"), self.path("local.npy"), shallow=False))
        names = sorted(os.listdir(self.path("local")))
        self.assertEqual(sorted(os.listdir(self.path("mpi"))), names)
        self.assertEqual(filecmp.cmpfiles(self.path("mpi"), self.path("local"), names, shallow=False)[0], names)

    def test_calibrate(self):
        """One rank prints one machine, which all ranks agree on and --machine reads."""
        for ranks in (2, 4):
            ran = self.ran_well(tool.reshard("calibrate", "--backend", "mpi", "--rounds", "3", "--output", "here.machine",
                                             ranks=ranks, folder=self.folder))
            self.assertEqual(ran.out.count("machine calibrated"), 1)
            self.assertEqual(ran.out.count("level node devices all"), 1)
            with open(self.path("here.machine"), encoding="utf-8") as file:
                self.assertEqual(file.read(), ran.out)
            self.assertNotIn(" message 0ps", ran.out)
            if ranks == 2:
                self.assertNotIn(" start ", ran.out)  # there is no smaller group
        ran = self.ran_well(tool.reshard("plan", *self.QUESTION, "--machine", "here.machine", folder=self.folder))
        self.assertIn("on calibrated", ran.out)
        # Other work may slow the small groups by chance; then all of the time belongs to the messages.
        tries = (self.ran_well(tool.reshard("calibrate", "--backend", "mpi", ranks=4)).out for _ in range(20))
        self.assertTrue(any(" start " in out for out in tries))
        ran = tool.reshard("calibrate", "--backend", "mpi", ranks=1)
        self.assertEqual(ran.code, 2)
        self.assertEqual(ran.err.count("fewer than 2 ranks"), 1)
        ran = tool.reshard("calibrate", "--rounds", "2", "--output", "no/such/folder", ranks=2, folder=self.folder)
        self.assertNotEqual(ran.code, 0)
        self.assertEqual(ran.err.count("no/such/folder"), 1)

    def test_fewer_ranks_than_devices(self):
        ran = tool.reshard("run", *self.QUESTION, ranks=2)
        self.assertEqual(ran.code, 2)
        self.assertEqual(ran.err.count("the mesh has 4 devices, 2 ranks were started"), 1)

    def test_local_under_a_launcher(self):
        ran = tool.reshard("run", *self.QUESTION, "--backend", "local", ranks=2)
        self.assertEqual(ran.code, 2)
        self.assertIn("--backend local", ran.err)

    def test_errors_of_files(self):
        npy_file.write(self.path("a.npy"), "<f4", (3,), {(i,): b"abcd" for i in range(3)})
        for more, error in ((("--input", "none.npy"), "none.npy"), (("--input", "a.npy"), "shape [3]"),
                            (("--output", "none/b.npy"), "none/b.npy"), (("--tiles", "none/b"), "none/b")):
            ran = tool.reshard("run", *self.QUESTION, *more, ranks=4, folder=self.folder)
            self.assertEqual(ran.code, 2, ran.err)
            self.assertEqual(ran.out, "")
            self.assertEqual(ran.err.count("reshard: "), 1, ran.err)
            self.assertIn(error, ran.err)
        self.assertEqual(os.listdir(self.folder), ["a.npy"])

    def test_bench(self):
        """On one node this plan is the direct exchange. Between nodes more steps are written by hand."""
        between = ["isend and irecv of boxes", "MPI_Bcast per unit task"]
        for more, direct, by_hand in (((), [], []), (("--ranks-per-node", "2"), ["direct exchange"], between)):
            ran = self.ran_well(tool.reshard("bench", "--json", "--rounds", "3", *self.QUESTION, *more, ranks=4))
            told = json.loads(ran.out)
            self.assertEqual([one["contestant"] for one in told["contestants"]],
                             ["this plan", "gather, then slice", *direct, "MPI_Alltoallw", *by_hand,
                              "caller's memory", "registered"])
            self.assertGreater(told["contestants"][-1]["register_seconds"], 0)
            for one in told["contestants"]:
                self.assertEqual((one["wrong"], len(one["seconds"])), (0, 3))

    def test_bench_of_a_cast_and_a_transposition(self):
        """Every contestant ends with the values of numpy, and one has its source in the order of the target."""
        question = ("--mesh", "x=4", "f32[64@x,32]", "bf16[32@x,64]")
        ran = self.ran_well(tool.reshard("bench", "--json", "--rounds", "1", "--cast", "--permute", "1,0", *question, ranks=4))
        told = {one["contestant"]: one for one in json.loads(ran.out)["contestants"]}
        for name in ("this plan", "without the cast", "source in order", "gather, then slice", "MPI_Alltoallw"):
            self.assertEqual((told[name]["wrong"], told[name]["elements_verified"] > 0), (0, True), name)
        ran = tool.reshard("bench", "--pad", "0", "--mesh", "x=4", "f32[64@x,32]", "f32[68@x,32]", ranks=4)
        self.assertIn("bench does not pad", ran.err)

    def test_bench_of_sums(self):
        """A single MPI call beside the plan, with blocks of rows and of columns, which are packed."""
        for target, call in (("f32[64,32]", "MPI_Allreduce"), ("f32[64@(x,y),32]", "MPI_Reduce_scatter"),
                             ("f32[64,32@(y,x)]", "MPI_Reduce_scatter"), ("f32[64@x,32]{U:y}", "MPI_Reduce_scatter")):
            ran = self.ran_well(tool.reshard("bench", "--json", "--rounds", "3", "--mesh", "x=2,y=2",
                                             "f32[64,32]{U:(x,y)}", target, ranks=4))
            told = {one["contestant"]: one for one in json.loads(ran.out)["contestants"]}
            self.assertEqual([name for name in told if name in ("MPI_Allreduce", "MPI_Reduce_scatter")], [call])
            self.assertEqual((told[call]["wrong"], len(told[call]["seconds"])), (0, 3), told[call])
            self.assertEqual(told[call]["elements_verified"], told["this plan"]["elements_verified"])


class Promised(tool.Case):
    """`run` on ranks does what `plan --backend mpi` states without ranks."""

    LAYOUTS = (("f32[64@x,64]", "f32[64,64@(y,x)]"), ("f32[64@x,64@y]", "f32[64@(y,x),64]"),
               ("f32[64,64]{U:x}", "f32[64@(y,x),64]"))
    KEYS = ("execution", "pieces", "steps", "received_bytes", "received_bytes_max_device", "footprint_bytes",
            "fingerprint", "rule", "donate")

    def promised(self, backend, layouts, *more):
        question = ("--json", "--backend", backend, "--mesh", "x=2,y=2", *layouts, *more)
        plan = json.loads(self.ran_well(tool.reshard("plan", *question)).out)
        run = json.loads(self.ran_well(tool.reshard("run", *question, ranks=4 if backend == "mpi" else 0)).out)
        for step in run["steps"]:
            for measured in ("seconds_estimate", "seconds_measured"):
                step.pop(measured)
        for key in self.KEYS:
            self.assertEqual(run[key], plan[key], key)
        self.assertEqual(run["accounted_bytes"] - run["staging_bytes"], plan["footprint_bytes"])
        return plan

    def test_run_keeps_what_plan_promises(self):
        for layouts in self.LAYOUTS:
            reduces = "U:" in layouts[0]
            options = ((), ("--donate",), ("--vocabulary", "collectives"))
            for more in options if layouts == self.LAYOUTS[0] else options[:1]:
                one_node = self.promised("mpi", layouts, *more)
                once = not reduces and more != ("--vocabulary", "collectives")
                self.assertEqual(one_node["execution"], "one_exchange" if once else "steps")
                if once:
                    self.assertEqual([step["kind"] for step in one_node["steps"]], ["exchange"])
                for others in (("mpi", layouts, "--ranks-per-node", "2", *more),
                               ("mpi", layouts, "--ranks-per-node", "1", *more), ("local", layouts, *more)):
                    self.assertEqual(self.promised(*others)["execution"], "steps")

    def test_steps_overlap_between_nodes(self):
        with tempfile.NamedTemporaryFile("w", suffix=".machine") as machine:
            machine.write("machine nodes\nlevel inside devices 2 message 0ps bandwidth 2MB/s\n"
                          "level outside devices all message 0ps bandwidth 1MB/s\ncopy 1EB/s\n")
            machine.flush()
            layouts = ("f32[256,16@x,16@y]", "f32[256,16,16]")
            more = ("--ranks-per-node", "2", "--machine", machine.name)
            plan = self.promised("mpi", layouts, *more)
            self.assertEqual(plan["execution"], "split")
            self.assertGreater(plan["pieces"], 2)
            self.assertLess(plan["picoseconds_estimate"], 0.8 * plan["serial_picoseconds_estimate"])
            question = ("--mesh", "x=2,y=2", *layouts, "--machine", machine.name)
            said = "runs in %d pieces whose steps overlap; one after the other they take " % plan["pieces"]
            for command in ("plan", "explain"):
                self.assertIn(said, self.ran_well(
                    tool.reshard(command, "--backend", "mpi", "--ranks-per-node", "2", *question)).out)
                for other in ((), ("--backend", "nccl"), ("--backend", "mpi")):
                    self.assertNotIn("steps overlap", self.ran_well(tool.reshard(command, *question, *other)).out)
            bench = self.ran_well(tool.reshard("bench", "--json", "--rounds", "1", "--backend", "mpi", "--ranks-per-node",
                                               "2", *question, ranks=4))
            told = json.loads(bench.out)
            self.assertEqual(told["pieces"], plan["pieces"])
            self.assertTrue(all(one["wrong"] == 0 for one in told["contestants"]), told)

    def test_it_is_said(self):
        said = "runs as one exchange: all ranks share a node\n"
        question = ("--mesh", "x=2,y=2", *self.LAYOUTS[0])
        for command in ("plan", "explain"):
            self.assertIn(said, self.ran_well(tool.reshard(command, "--backend", "mpi", *question)).out)
            for more in ((), ("--backend", "nccl"), ("--backend", "mpi", "--ranks-per-node", "3")):
                self.assertNotIn(said, self.ran_well(tool.reshard(command, *question, *more)).out)

    def test_no_such_backend(self):
        question = ("plan", "--mesh", "x=2", "f32[4@x]", "f32[4]")
        for more, error in ((("--backend", "gloo"), "there is no backend 'gloo'"),
                            (("--backend", "local", "--ranks-per-node", "2"), "--ranks-per-node is for --backend mpi"),
                            (("--ranks-per-node", "2"), "--ranks-per-node is for --backend mpi")):
            ran = tool.reshard(*question, *more)
            self.assertEqual(ran.code, 2)
            self.assertIn(error, ran.err)


if __name__ == "__main__":
    tool.main()
