"""`plan --rows`: carries out files of rows by copying bytes. The tiles must equal those from `run`."""

import ast
import filecmp
import json
import os
import struct
import subprocess
import sys

import tool

FIELDS = ["array", "peer", "source_offset", "target_offset", "run_bytes", "runs", "source_stride", "target_stride"]


def read_rows(path):
    """The rows of a file as dictionaries."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    assert data[:8] == b"\x93NUMPY\x01\x00" and (10 + length) % 64 == 0, header
    assert header["descr"] == [(field, "<i8") for field in FIELDS] and not header["fortran_order"], header
    rows = [dict(zip(FIELDS, numbers)) for numbers in struct.iter_unpack("<8q", data[10 + length:])]
    assert header["shape"] == (len(rows),), header
    return rows


def body(path):
    with open(path, "rb") as file:
        data = file.read()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


class Rows(tool.Case):
    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def rows(self, *arguments, folder="rows"):
        ran = self.ran_well(tool.reshard("plan", *arguments, "--rows", self.path(folder), "--json"))
        answer = json.loads(ran.out)
        return answer, [read_rows(self.path(f"{folder}/rank{r}.rows.npy")) for r in range(answer["ranks"])]

    def refused(self, *arguments):
        ran = tool.reshard("plan", *arguments, "--rows", self.path("rows"))
        self.assertEqual(ran.code, 2, ran.err + ran.out)
        self.assertFalse(os.path.exists(self.path("rows")))
        return ran.err

    def test_rows_copied_give_the_tiles_of_a_run(self):
        for problem in (["--mesh", "x=2,y=2", "f32[7@(x,y),6]", "f32[7,6@(y,x)]"],
                        ["--mesh", "x=4", "i16[12@x/2,5]", "i16[12@x,5]"],
                        ["--mesh", "x=2,y=2", "u8[8,6]", "u8[8@y,6@x]"],
                        ["--mesh", "x=2[3,1]", "--target-mesh", "y=3", "f64[5@x,4]", "f64[5,4@y]"]):
            self.ran_well(tool.reshard("run", "--backend", "local", *problem, "--tiles", self.path("tiles")))
            answer, rows = self.rows(*problem)
            named = lambda rank, end: self.path(f"tiles/rank{rank}.{end}.npy")
            ranks = [r for r in range(answer["ranks"]) if os.path.exists(named(r, "source"))]
            sources = {r: body(named(r, "source")) for r in ranks}
            targets = {r: bytearray(len(body(named(r, "target")))) for r in ranks}
            for rank in ranks:
                for row in rows[rank]:
                    for i in range(row["runs"]):
                        at = row["source_offset"] + i * row["source_stride"]
                        to = row["target_offset"] + i * row["target_stride"]
                        size = row["run_bytes"]
                        targets[row["peer"]][to:to + size] = sources[rank][at:at + size]
            for rank in ranks:
                self.assertEqual(bytes(targets[rank]), body(named(rank, "target")), problem)
            moved = sum(row["runs"] * row["run_bytes"] for r in ranks for row in rows[r] if row["peer"] != r)
            self.assertEqual(answer["moved_bytes"], moved)

    def test_storages_of_both_ends(self):
        # A cache of 2 blocks, 3 heads, 4 tokens and 5 numbers: (block, head, token) becomes (block, token, head).
        problem = ["--mesh", "x=2", "u8[2@x,3,4,5]", "u8[2,3,4,5]"]
        answer, rows = self.rows(*problem, "--target-storage", "order 0,2,1,3", folder="stored")
        self.assertEqual(answer["moved_bytes"], 120)
        dense = [2 * 3 * 4 * 5 * [None] for _ in range(2)]
        for rank in range(2):
            for row in rows[rank]:
                for i in range(row["runs"]):
                    for byte in range(row["run_bytes"]):
                        at = row["source_offset"] + i * row["source_stride"] + byte
                        head, token, number = at // 20, at // 5 % 4, at % 5
                        to = row["target_offset"] + i * row["target_stride"] + byte
                        self.assertEqual(to, ((rank * 4 + token) * 3 + head) * 5 + number)
                        dense[row["peer"]][to] = (rank, at)
        self.assertEqual([bytes.count(None) for bytes in dense], [0, 0])
        self.assertIn("each of the 4 dimensions once", self.refused(*problem, "--source-storage", "order 0,1,2"))
        self.assertIn("--rows", tool.reshard("plan", *problem, "--nested").err)

    def test_nested_rows_of_blocks_in_two_dimensions(self):
        problem = ["--mesh", "x=2,y=2", "f64[256@x/32,256@y/32]", "f64[256@x/64,256@y/64]"]
        flat, _ = self.rows(*problem)
        ran = self.ran_well(tool.reshard("plan", *problem, "--nested", "--rows", self.path("nested"), "--json"))
        nested = json.loads(ran.out)
        self.assertEqual((flat["rows"], nested["rows"]), (32, 16))
        self.assertEqual({key: flat[key] for key in flat if key != "rows"},
                         {key: nested[key] for key in nested if key != "rows"})
        self.assertEqual(len(body(self.path("nested/rank0.rows.npy"))), 4 * 17 * 8)

    def test_what_is_received_mirrors_what_is_sent(self):
        problem = ["--mesh", "x=3,y=2", "f32[10@x,9@y]", "f32[10@y,9@x]"]
        answer, sent = self.rows(*problem)
        other, received = self.rows(*problem, "--side", "receive")
        self.assertEqual((answer["rows"], answer["sent_bytes_max_device"], answer["received_bytes_max_device"]),
                         (other["rows"], other["sent_bytes_max_device"], other["received_bytes_max_device"]))
        for rank in range(6):
            for peer in range(6):
                here = [{**row, "peer": 0} for row in sent[rank] if row["peer"] == peer]
                there = [{**row, "peer": 0} for row in received[peer] if row["peer"] == rank]
                self.assertEqual(here, there)

    def test_a_list_has_its_names_beside_the_rows(self):
        lines = [{"id": f"w{i}", "mesh": "x=2", "source": "f32[8@x,4]", "target": "f32[8,4@x]"} for i in range(3)]
        list_file = self.write("list.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        answer, rows = self.rows("--list", list_file)
        self.assertEqual((answer["arrays"], answer["questions"]), (3, 1))
        self.assertEqual([row["array"] for row in rows[0]], [0, 0, 1, 1, 2, 2])
        with open(self.path("rows/arrays.tsv"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "source\ttarget\nw0\tw0\nw1\tw1\nw2\tw2\n")

    def test_a_model_by_rules(self):
        tensors = self.write("list", "q u8[4,2]\nk u8[2,2]\nnorm u8[2]\n")
        rules = self.write("rules", "source x=2\nnorm = -\notherwise = [x, -]\n"
                                    "target x=2[2,3]\nqk = [x, -] <- q + k\nother = - <- norm\n")
        answer, rows = self.rows("--list", tensors, "--rules", rules)
        self.assertEqual((answer["arrays"], answer["ranks"]), (3, 4))
        self.assertEqual([[row[field] for field in FIELDS[:5]] for row in rows[1]],
                         [[0, 3, 0, 0, 4], [1, 3, 0, 4, 2], [2, 3, 0, 0, 2]])
        with open(self.path("rows/arrays.tsv"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "source\ttarget\nq\tqk\nk\tqk\nnorm\tother\n")

    def test_a_model_of_92_thousand_tensors(self):
        bench = os.path.join(tool.HERE, "../../bench/rows")
        listed = subprocess.run([sys.executable, os.path.join(bench, "deepseek_v3.py")], capture_output=True, check=True)
        with open(self.path("list"), "wb") as file:
            file.write(listed.stdout)
        self.assertEqual(listed.stdout.count(b"\n"), 91991)
        ran = self.ran_well(tool.reshard("plan", "--list", self.path("list"), "--json", "--rows", self.path("rows"),
                                         "--rules", os.path.join(bench, "deepseek_v3.rules")))
        answer = json.loads(ran.out)
        self.assertEqual((answer["arrays"], answer["questions"], answer["ranks"]), (91991, 1565, 384))
        # Each of the 128 new ranks wants its two experts of 256, an eighth of the tensors that tp cuts, and everything else.
        self.assertEqual(answer["moved_bytes"], 128 * answer["received_bytes_max_device"])
        self.assertEqual(answer["moved_bytes"], 256 * answer["sent_bytes_max_device"])
        rows = read_rows(self.path("rows/rank255.rows.npy"))
        self.assertLess(len(rows), 2000)
        self.assertEqual({row["peer"] for row in rows} - set(range(256, 384)), set())

        listed = subprocess.run([sys.executable, os.path.join(bench, "deepseek_v3.py"), "--patterns"], capture_output=True,
                                check=True)
        with open(self.path("patterns"), "wb") as file:
            file.write(listed.stdout)
        self.assertLess(listed.stdout.count(b"\n"), 60)
        self.ran_well(tool.reshard("plan", "--list", self.path("patterns"), "--json", "--rows", self.path("again"),
                                   "--rules", os.path.join(bench, "deepseek_v3.rules")))
        names = sorted(os.listdir(self.path("rows")))
        self.assertEqual(len(names), 385)
        self.assertEqual(filecmp.cmpfiles(self.path("rows"), self.path("again"), names, shallow=False), (names, [], []))

    def test_what_is_wrong_leaves_no_folder(self):
        plain = ["--mesh", "x=2", "f32[8@x]", "f32[8]"]
        self.assertIn("must be reduced first", self.refused("--mesh", "x=2", "f32[8]{U:x}", "f32[8]"))
        self.assertIn("no option chooses another plan", self.refused(*plain, "--objective", "bytes"))
        self.assertIn("no option chooses another plan", self.refused(*plain, "--backend", "local"))
        self.assertIn("cast nothing", self.refused("--mesh", "x=2", "f32[8@x]", "bf16[8]"))
        self.assertIn("--rows move bytes and cast nothing", self.refused("--cast", "--mesh", "x=2", "f32[8@x]", "bf16[8]"))
        self.assertIn("--rules requires --list", self.refused(*plain, "--rules", self.write("r", "")))
        self.assertIn("not in {send,receive}", self.refused(*plain, "--side", "both"))
        tensors = self.write("list", "a u8[4]\nb u8[4]\n")
        rules = self.write("rules", "source x=2\na = [x]\ntarget x=2\notherwise = -\n")
        self.assertIn("line 1 of the rules: no line of the source matches 'b'",
                      self.refused("--list", tensors, "--rules", rules))
        self.assertIn("line 1 of the list: ", self.refused("--list", self.write("bad", "a u9[4]\n"), "--rules", rules))
        with open(self.path("mine"), "w", encoding="utf-8"):
            pass
        ran = tool.reshard("plan", *plain, "--rows", self.folder)
        self.assertEqual(ran.code, 2)
        self.assertIn("in it is no file of rows; name a folder of its own", ran.err)

    def test_a_folder_of_tiles_is_not_taken_for_one_of_rows(self):
        question = ("--mesh", "x=2", "f32[8@x]", "f32[8]")
        tiles, rows = self.path("tiles"), self.path("rows")
        self.ran_well(tool.reshard("run", *question, "--tiles", tiles))
        self.ran_well(tool.reshard("plan", *question, "--rows", rows))
        for command in (("plan", "--rows", tiles), ("run", "--tiles", rows)):
            before = sorted(os.listdir(command[2]))
            ran = tool.reshard(command[0], *question, *command[1:])
            self.assertEqual(ran.code, 2)
            self.assertIn("in it is no ", ran.err)
            self.assertEqual(sorted(os.listdir(command[2])), before)


if __name__ == "__main__":
    tool.main()
