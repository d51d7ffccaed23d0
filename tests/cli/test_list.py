"""`plan --list` and `run --list`: many arrays under one footprint limit, in buckets."""

import json
import unittest

import tool

WIDTH = 64
LAYER = [("q", (WIDTH, WIDTH), 0), ("k", (16, WIDTH), 0), ("v", (16, WIDTH), 0), ("o", (WIDTH, WIDTH), 1),
         ("gate", (192, WIDTH), 0), ("up", (192, WIDTH), 0), ("down", (WIDTH, 192), 1), ("norm1", (WIDTH,), None),
         ("norm2", (WIDTH,), None)]


def tensor(name, shape, cut):
    """From six trainers, which shard the first dimension, to two servers, which shard one dimension or none."""
    source = [f"{extent}@x" if i == 0 else str(extent) for i, extent in enumerate(shape)]
    target = [f"{extent}@y" if i == cut else str(extent) for i, extent in enumerate(shape)]
    return {"id": name, "mesh": "x=6", "source": f"f32[{','.join(source)}]", "target_mesh": "y=2[6-7]",
            "target": f"f32[{','.join(target)}]"}


def transformer(layers):
    return [tensor(f"{layer}.{name}", shape, cut) for layer in range(layers) for name, shape, cut in LAYER]


def turning(count):
    """8 KiB per rank before and after, on eight ranks."""
    return [{"id": f"w{i}", "mesh": "x=8", "source": "f32[128@x,128]", "target": "f32[128,128@x]"} for i in range(count)]


class Lists(tool.Case):
    def write(self, problems, name="list.jsonl"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines((p if isinstance(p, str) else json.dumps(p)) + "\n" for p in problems)
        return self.path(name)

    def ask(self, command, problems, *more, ranks=0):
        ran = self.ran_well(tool.reshard(command, "--list", self.write(problems), "--json", *more, ranks=ranks))
        return json.loads(ran.out)

    def refused(self, problems, *more, code=2, command="plan"):
        ran = tool.reshard(command, "--list", self.write(problems), *more)
        self.assertEqual(ran.code, code, ran.err + ran.out)
        return ran.err

    def test_plans_that_would_be_cut_alone_are_counted(self):
        cut = {"mesh": "x=4,y=8", "source": "f32[65536@(x,y),4096]", "target": "f32[65536,4096@x]"}
        whole = {"mesh": "x=4,y=8", "source": "f32[65536@x]", "target": "f32[65536]"}
        where = ["--backend", "mpi", "--ranks-per-node", "8", "--machine", "dgx-h100:nodes=4"]
        self.assertEqual(self.ask("plan", [cut, whole, cut], *where)["cut_alone"], 2)
        self.assertEqual(self.ask("plan", [cut, whole, cut])["cut_alone"], 0)
        text = self.ran_well(tool.reshard("plan", "--list", self.write([cut, whole, cut]), *where)).out
        self.assertIn("2 of 3 arrays would end sooner in runs of their own, in pieces whose steps overlap\n", text)

    def test_figures_are_those_of_the_busiest_device(self):
        """Eight matrices, each to its own owner: the rows move what the plan states."""
        matrices = [{"id": f"w{i}", "mesh": "x=8", "source": "f32[512@x,512]", "target_mesh": f"o=1[{i}]",
                     "target": "f32[512,512]"} for i in range(8)]
        said = self.ask("plan", matrices)
        rows = json.loads(self.ran_well(tool.reshard("plan", "--list", self.write(matrices), "--rows", self.path("rows"),
                                                     "--json")).out)
        each = 7 * 128 << 10
        for name in ("received_bytes_max_device", "sent_bytes_max_device"):
            self.assertEqual((said[name], rows[name]), (each, each))
        self.assertEqual((said["received_bytes"], said["lower_bound_bytes"], said["messages"]), (each, each, 7))
        self.assertEqual(said["buckets"][0]["received_bytes"], each)
        self.assertTrue(said["received_exact"] and said["sent_exact"])
        self.assertLess(said["seconds_estimate"], sum(one["seconds_estimate"] for one in said["arrays"]) / 2)
        text = self.ran_well(tool.reshard("plan", "--list", self.write(matrices))).out
        self.assertIn("received 896.0 KiB (lower bound 896.0 KiB)   sent 896.0 KiB   7 messages\n", text)

    def test_a_reshape_that_looks_like_a_transposition_is_named(self):
        turned = {"mesh": "x=4", "source": "f32[128,256@x]", "target": "f32[256,128@x]"}
        whole = {"mesh": "x=4", "source": "f32[8@x]", "target": "f32[8]"}
        ran = self.ran_well(tool.reshard("plan", "--list", self.write([whole, turned, turned]), "--json"))
        self.assertIn("line 2: f32[128,256@x] to f32[256,128@x] is read as a reshape", ran.err)
        self.assertIn("(as 1 more lines are)", ran.err)
        notes = [one.get("note", "") for one in json.loads(ran.out)["arrays"]]
        self.assertEqual([bool(note) for note in notes], [False, True, True])

    def test_lists_cast_array_by_array_and_rows_refuse(self):
        arrays = [{"id": "a", "mesh": "x=4", "source": "f32[64@x,8]", "target": "bf16[64,8@x]"},
                  {"id": "b", "mesh": "x=4", "source": "f32[64@x,8]", "target": "f32[64,8@x]"},
                  {"id": "c", "mesh": "x=4", "source": "bf16[64,8]{U:x}", "target": "f32[64@x,8]"}]
        ran = self.ask("run", arrays, "--backend", "local", "--cast")
        self.assertEqual((ran["wrong"], ran["elements_verified"]), (0, 3 * 64 * 8))
        wrong = "array 0: element types differ: f32 and bf16; "
        self.assertIn(wrong + "a move casts if the option cast is on", self.refused(arrays))
        self.assertIn(wrong + "rows move bytes and cast nothing", self.refused(arrays, "--rows", self.path("rows")))
        changed = [dict(arrays[0], permute="1,0"), dict(arrays[1], pad="0")]
        for one in changed:
            self.assertIn("permute and pad are for one array, not for an array of a list", self.refused([one], "--cast"))

    def test_buckets_keep_the_limit(self):
        free = self.ask("plan", turning(16))
        self.assertEqual(len(free["buckets"]), 1)
        self.assertEqual(free["footprint_bytes"], 16 * 16384)
        before = 17
        for in_flight in (1, 2, 4, 16):
            limit = (16 + in_flight) * 8192
            answer = self.ask("plan", turning(16), "--donate", "--footprint-bytes-max", str(limit))
            self.assertEqual(len(answer["buckets"]), 16 // in_flight)
            self.assertLess(len(answer["buckets"]), before)
            before = len(answer["buckets"])
            self.assertLessEqual(answer["footprint_bytes"], limit)
            self.assertEqual(answer["footprint_bytes"], max(bucket["held_bytes"] for bucket in answer["buckets"]))
            self.assertEqual(sorted(i for bucket in answer["buckets"] for i in bucket["arrays"]), list(range(16)))
            self.assertEqual(answer["messages"], sum(bucket["messages"] for bucket in answer["buckets"]))
            self.assertEqual([array["id"] for array in answer["arrays"]], [f"w{i}" for i in range(16)])

    def test_below_the_floor(self):
        said = self.refused(turning(16), "--donate", "--footprint-bytes-max", str(17 * 8192 - 1), code=1)
        self.assertIn(f"no order needs less than 136.0 KiB ({17 * 8192} bytes)", said)
        said = self.refused(turning(16), "--footprint-bytes-max", str(17 * 8192), code=1)
        self.assertIn("no order needs less than 256.0 KiB", said)

    def test_what_is_no_list(self):
        self.assertIn("the list is empty", self.refused(["", "  "]))
        self.assertIn("line 3: ", self.refused([turning(1)[0], "", "{"]))
        self.assertIn("no axis z", self.refused([{"mesh": "x=2", "source": "f32[4@z]", "target": "f32[4]"}]))
        self.assertIn("options of a list", self.refused([dict(turning(1)[0], options={"objective": "bytes"})]))
        self.assertIn("from its file alone", self.refused(turning(1), "--mesh", "x=2"))
        self.assertIn("--batch", self.refused(turning(1), "--batch"))
        self.assertIn("excludes --list", self.refused(turning(1), "--output", "a.npy", command="run"))
        self.assertEqual(tool.reshard("plan", "--list", self.path("nowhere")).code, 2)
        self.assertEqual(tool.reshard("plan", "--staging-bytes", "1MiB", "--mesh", "x=2", "f32[4@x]", "f32[4]").code, 2)
        self.assertEqual(tool.reshard("run", "--list", "-", stdin=b"").code, 2)

    def test_from_stdin(self):
        lines = "".join(json.dumps(p) + "\n" for p in turning(3)).encode()
        ran = self.ran_well(tool.reshard("plan", "--list", "-", stdin=lines))
        self.assertIn("3 arrays in 1 buckets   footprint 48.0 KiB", ran.out)
        self.assertIn("checked", ran.out)

    def test_every_element_is_looked_at(self):
        answer = self.ask("run", transformer(2), "--backend", "local")
        self.assertEqual(answer["wrong"], 0)
        elements = sum(shape[0] * (shape[1] if len(shape) > 1 else 2) for _, shape, _ in LAYER)  # norms are copied
        self.assertEqual(answer["elements_verified"], 2 * elements)
        answer = self.ask("run", turning(9), "--backend", "local", "--donate", "--footprint-bytes-max", str(10 * 8192))
        self.assertEqual((answer["wrong"], len(answer["buckets"])), (0, 9))

    def test_sums_and_notations(self):
        problems = [{"id": 1, "mesh": "x=4", "source": "f32[32,8]{U:x}", "target": "f32[32@x,8]"},
                    {"id": 2, "notation": "hlo", "array": "i16[16,8]", "mesh": "4", "source": "{devices=[4,1]<=[4]}",
                     "target": "{devices=[1,4]<=[4]}"}, {"mesh": "x=3", "source": "u8[7@x]", "target": "u8[7]"}]
        answer = self.ask("run", problems, "--backend", "local", "--objective", "bytes")
        self.assertEqual(answer["wrong"], 0)
        self.assertEqual([array["objective"] for array in answer["arrays"]], ["bytes"] * 3)

    @unittest.skipUnless(tool.MPIEXEC, "there is no MPI")
    def test_under_mpi_the_limit_is_kept(self):
        """From six trainers to two servers, and on eight ranks in buckets."""
        limit = 1 << 20
        more = ("--footprint-bytes-max", str(limit), "--staging-bytes", str(1 << 18))
        served = self.ask("run", transformer(5), *more, ranks=8)
        self.assertEqual((served["wrong"], len(served["buckets"])), (0, 1))
        turned = self.ask("run", turning(64), "--donate", *more, ranks=8)
        self.assertEqual(turned["wrong"], 0)
        self.assertGreater(len(turned["buckets"]), 1)
        for answer in (served, turned):
            self.assertLessEqual(answer["high_water_bytes"], limit)
            self.assertEqual(answer["high_water_bytes"], answer["accounted_bytes"])


if __name__ == "__main__":
    tool.main()
