"""Targets with halos: what a fill costs, the way that runs, and every cell of real arrays."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import tool

SQUARE = ("--mesh", "x=4,y=4", "f64[64@x,64@y]", "f64[64@x~1%,64@y~1%]")
FILLS = (  # a mesh and two ends; open and periodic, uneven, empty, wider than a block, from another layout
    ("x=2,y=2", "f64[30@x,20@y]", "f64[30@x~2%,20@y~1]"),
    ("x=4", "i32[9@x,3]", "i32[9@x~(2,0)%,3]"),
    ("x=4", "u8[3@x,5]", "u8[3@x~1,5]"),
    ("x=2", "f32[6@x,4]", "f32[6@x~11%,4~1%]"),
    ("x=2,y=2", "f32[6@x,8@y]", "f32[6@y~1%,8@x~2]"),
    ("x=2,y=3", "i16[12@y,7]", "i16[12@y~1%,7]"),
    ("x=4", "i32[9@x~1,6]", "i32[9@x~1,6]"),  # in place
    ("x=2,y=2", "f64[8@x~1,6@y~(2,0)]", "f64[8@y~1%,6@x~1]"),  # the halos of the source are not read
    ("x=2,y=2", "f64[8@x~1,6@y]", "f64[8@y,6@x]"),
    ("x=4", "f64[8@x,6~1]", "f64[8@x~1%,6]", "--target-mesh", "x=3[2,4,5]"),
)


class Halos(tool.Case):
    def asked(self, *arguments, ranks=0):
        return json.loads(self.ran_well(tool.reshard(*arguments, "--json", ranks=ranks)).out)

    def test_the_prices_of_both_ways(self):
        for command in ("plan", "explain"):
            said = self.asked(command, *SQUARE)
            self.assertEqual([(way["rounds"], way["messages"]) for way in said["ways"]], [(1, 8), (2, 4)])
            self.assertEqual({way["received_bytes"] for way in said["ways"]}, {(18 * 18 - 16 * 16) * 8})
            self.assertEqual((said["way"], said["in_place"]), ("all at once", True))
        far = self.asked("plan", *SQUARE, "--machine", "ethernet:nodes=4,per_node=4")
        self.assertEqual(far["way"], "dimension by dimension")
        self.assertLess(far["ways"][1]["picoseconds"], far["ways"][0]["picoseconds"] / 2)
        near = self.asked("plan", *SQUARE, "--machine", "ethernet:nodes=4,per_node=4", "--backend", "mpi")
        self.assertEqual(near["way"], "all at once")  # all ranks share memory

    def test_every_cell_of_a_run_is_right(self):
        for mesh, source, target, *more in FILLS:
            with self.subTest(target):
                said = self.asked("run", "--backend", "local", "--mesh", mesh, source, target, *more)
                self.assertEqual(said["wrong"], 0)
                self.assertGreater(said["cells_verified"], 0)
                self.assertEqual(said["received_bytes"], said["ways"][0]["received_bytes"])

    def test_bench_measures_both_ways(self):
        said = self.asked("bench", "--backend", "local", "--rounds", "2", "--mesh", *FILLS[0])
        self.assertEqual([one["way"] for one in said["contestants"]], ["all at once", "dimension by dimension"])
        self.assertEqual([(len(one["seconds"]), one["wrong"]) for one in said["contestants"]], [(2, 0), (2, 0)])

    def test_between_processes(self):
        if not tool.MPIEXEC:
            self.skipTest("there is no MPI here")
        for more in ((), ("--ranks-per-node", "1")):
            said = self.asked("run", "--backend", "mpi", *more, "--mesh", *FILLS[0], ranks=4)
            self.assertEqual((said["wrong"], said["backend"]), (0, "mpi"))

    def test_what_halos_do_not_have_is_refused(self):
        mesh = ("--mesh", "x=2")
        for arguments, words in (
                ((*mesh, "f32[8@x]", "f32[8@x~1]", "--vocabulary", "all"), "no option of plans"),
                ((*mesh, "f32[9@x]", "f32[8@x~1]"), "9 and 8"),
                ((*mesh, "f32[8@x]{U:x}", "f32[8@x~1]"), "used twice"),
                ((*mesh, "f32[8@x]", "f32[8@x~]"), "the cells of a halo")):
            ran = tool.reshard("plan", *arguments)
            self.assertEqual(ran.code, 2, ran.err)
            self.assertIn(words, ran.err)
        ran = tool.reshard("run", *mesh, "f32[8@x]", "f32[8@x~1]", "--output", self.path("a.npy"))
        self.assertEqual(ran.code, 2)
        self.assertIn("generated data", ran.err)

    def test_draw_lists_the_cells(self):
        out = self.ran_well(tool.reshard("draw", "--mesh", "x=2", "f32[8@x]", "f32[8@x~(1,2)%]")).out
        self.assertIn("0..4   -1..6", out)


if __name__ == "__main__":
    tool.main()
