"""`explain --log`: XLA's warnings in all their forms, as versions of XLA wrote them."""

import json

import tool

V2 = ("W1122 21:06:33.939645   12283 spmd_partitioner.cc:656] [SPMD] Involuntary full rematerialization. The compiler cannot go "
      "from sharding {devices=[1,2,4]<=[8]} to {devices=[8,1,1]<=[8]} efficiently for HLO operation %sharding_constraint.2 = "
      "f32[64,32,16]{2,1,0} copy(%dot), sharding={devices=[1,2,4]<=[8]}, metadata={op_name=\"jit(f)/sharding_constraint\" "
      "stack_frame_id=3}. As the last resort, SPMD will replicate the tensor and then partition it.")
V3 = ("W1122 21:06:40.949226   13078 spmd_partitioner.cc:666] [SPMD] Involuntary full rematerialization. The compiler cannot go "
      "from sharding {mesh['x'=2,'y'=4], [{}, {'x'}, {'y'}]} to {mesh['x'=2,'y'=4], [{'x', 'y'}, {}, {}]} efficiently for HLO "
      "operation %copy.1 = bf16[64,32,16]{2,1,0} copy(%dot), metadata={op_name=\"jit(f)/add\" source_file=\"a/model.py\" "
      "source_line=12}. As the last resort, SPMD will replicate the tensor.")
OLD = ("2025-04-14 17:55:24.1: E external/xla/xla/service/spmd/spmd_partitioner.cc:621] [spmd] Involuntary full "
       "rematerialization. The compiler was not able to go from sharding {devices=[2,1,4]<=[4,2]T(1,0)} to {devices=[1,8,1]<=[8]} "
       "without doing a full rematerialization of the tensor for HLO operation: %add = s32[8,16,4]{2,1,0} add(%a, %b), "
       "sharding={devices=[2,1,4]<=[4,2]T(1,0)}. You probably want to enrich the sharding annotations.")
BARE = ("[spmd] Involuntary full rematerialization. The compiler was not able to go from sharding {devices=[256,1]<=[256]} to "
        "{devices=[1,64,4]<=[256] last_tile_dim_replicate} without doing a full rematerialization of the tensor.")


class Log(tool.Case):
    def explained(self, *lines, more=()):
        with open(self.path("train.log"), "w", encoding="utf-8") as file:
            file.write("\n".join(("step 1", *lines, "step 2")))
        return tool.reshard("explain", "--log", self.path("train.log"), *more)

    def rows(self, *lines):
        return json.loads(self.ran_well(self.explained(*lines, more=["--json"])).out)["rows"]

    def test_every_form_of_the_line(self):
        rows = {row["place"]: row for row in self.rows(V2, V3, OLD, BARE)}
        whole = 64 ** 3 * 4
        row = rows["jit(f)/sharding_constraint"]
        self.assertEqual((row["source"], row["target"]), ("f32[64,64@x,64@y]", "f32[64@(x,y),64,64]"))
        self.assertEqual((row["xla_bytes"], row["xla_peak"]), (whole * 7 // 8, whole))
        self.assertEqual((row["bytes"], row["peak"], row["plan"]), (whole // 8 * 7 // 8, whole // 8, "all_to_all"))
        self.assertEqual(row["saved_bytes"], row["xla_bytes"] - row["bytes"])
        self.assertEqual(rows["a/model.py:12"]["line"], "x = reshard.jax.reshard(x, P(('x', 'y'), None, None))")
        self.assertEqual(rows["a/model.py:12"]["xla_bytes"], whole // 2 * 7 // 8)
        self.assertEqual(rows["%add"]["xla_peak"], 16 ** 3 * 4)
        self.assertEqual(rows[""]["problem"], "the line does not say which array it is")

    def test_equal_lines_once_and_the_worst_first(self):
        rows = self.rows(OLD, V3, V3, V2)
        self.assertEqual([row["lines"] for row in rows], [1, 2, 1])
        self.assertEqual([row["saved_bytes"] for row in rows], sorted((row["saved_bytes"] for row in rows), reverse=True))

    def test_as_text(self):
        out = self.ran_well(self.explained(V3, V3)).out
        self.assertEqual(out, "1. a/model.py:12   2 lines\n"
                              "   bf16[64,64@x,64@y] -> bf16[64@(x,y),64,64]\n"
                              "   XLA        448.0 KiB  peak  512.0 KiB  all_gather of the whole array, slice\n"
                              "   reshard     56.0 KiB  peak   64.0 KiB  all_to_all\n"
                              "   saves 392.0 KiB (8x):  x = reshard.jax.reshard(x, P(('x', 'y'), None, None))\n"
                              "2 lines of 1 reshard; XLA receives 448.0 KiB a device, 392.0 KiB of it for nothing\n")

    def test_a_limit_for_ci(self):
        ran = self.explained(V2, more=["--waste-max", "1.1"])
        self.assertEqual(ran.code, 1)
        self.assertIn("jit(f)/sharding_constraint: XLA receives 8x of what is needed, at most 1.1x is allowed", ran.err)
        self.ran_well(self.explained(V2, more=["--waste-max", "8"]))
        self.ran_well(self.explained(more=["--waste-max", "1"]))

    def test_broken_lines_and_arguments(self):
        for end in range(60, len(V3), 7):
            self.ran_well(self.explained(V3[:end], more=["--json"]))
        self.assertEqual(self.rows(V3[:100]), [])
        for text in ("f32[9223372036854775807,2,2]", "f32[", "(f32[2], f32[4])", "token[]"):
            self.assertIn("problem", self.rows(V3.replace("bf16[64,32,16]", text))[0])
        self.assertEqual(tool.reshard("explain", "--log", self.path("none")).code, 2)
        self.assertEqual(self.explained(V2, more=["--mesh", "x=2"]).code, 2)
        self.assertEqual(tool.reshard("explain", "--waste-max", "2", "f32[4]", "f32[4]").code, 2)


if __name__ == "__main__":
    tool.main()
