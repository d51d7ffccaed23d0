#include "tool/commands/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <utility>

namespace reshard::cli {
namespace {

constexpr const char* footer =
    "Layouts are written as JAX prints them, axes major to minor: f32[8192@(x,y),4096,128@z:(2)2], unreduced sums\n"
    "f32[64]{U:w}. Sizes in bytes take units: 1024, 96MiB, 1.5GiB, 2GB. Answers go to stdout, complaints to stderr.\n"
    "\n"
    "Exit codes:\n"
    "  0  done\n"
    "  1  no plan within the limits, a wrong result, or an answer that could not be written\n"
    "  2  bad input: arguments, layouts, files\n"
    "  3  the backend failed, or a rank did not come in time";

using Pair = std::pair<const char*, const char*>;

// Commands that do something as they stand; tests/cli runs each.
constexpr auto examples = std::to_array<Pair>({
    {"plan",
     "  reshard plan --mesh x=2,y=3 'f32[12288@x,4096]' 'f32[12288@y,4096]'\n"
     "  reshard plan --notation hlo --array 'bf16[1024,8192]' '{devices=[8,1]<=[8]}' '{devices=[1,8]<=[8]}'\n"
     "  echo '{\"id\":1,\"mesh\":\"x=4\",\"source\":\"f32[8@x]\",\"target\":\"f32[8]\"}' | reshard plan --batch\n"},
    {"explain",
     "  reshard explain --mesh x=4,y=8 'f32[65536@(x,y),4096]' 'f32[65536,4096@x]' --machine dgx-h100:nodes=4\n"
     "  reshard explain --mesh x=2,y=3 'f32[6@x]' 'f32[6@y]' --disabled-rules search,direct_exchange --times\n"
     "  echo 'step 1' > train.log; reshard explain --log train.log --waste-max 1.1\n"},
    {"draw",
     "  reshard draw --mesh x=2,y=3 'f32[6@x]' 'f32[6@y]'\n"
     "  reshard draw --mesh x=2,y=3 'f32[6@x]' 'f32[6@y]' --svg > steps.svg\n"},
    {"run",
     "  reshard run --backend local --mesh x=4 'i32[1000@x,300]' 'i32[1000,300@x]' --output moved.npy\n"
     "  mpirun -n 4 reshard run --mesh x=4 'i32[1000@x,300]' 'i32[1000,300@x]' --tiles tiles\n"},
    {"bench", "  mpirun -n 4 reshard bench --mesh x=4 'f32[1024@x,1024]' 'f32[1024,1024@x]' --rounds 5\n"},
    {"calibrate",
     "  mpirun -n 4 reshard calibrate --output here.machine\n"
     "  reshard plan --mesh x=4 'f32[4096@x,64]' 'f32[4096,64@x]' --machine here.machine\n"
     "  reshard calibrate --disk . --rounds 1\n"},
    {"emit", "  reshard emit --to jax --mesh x=2,y=4 'f32[16,8@x,16@y]' 'f32[16@(x,y),8,16]' > move.py\n"},
    {"schedule",
     "  reshard schedule --generate '1f1b stages=4 microbatches=8 forward=10ms backward=20ms'\n"
     "  reshard schedule --generate 'refit buckets=8 hold=2 move=15ms' --chain\n"
     "  reshard schedule --compare 'eager stages=2 microbatches=4 move=9ms' '1f1b stages=2 microbatches=4 move=9ms'\n"
     "  reshard schedule --generate 'zero3 layers=6' --machine dgx-h100:nodes=1 --trace > perfetto.json\n"},
    {"translate", "  reshard translate --from hlo --to sdy --array 'f32[16,16,16]' '{devices=[2,1,4]<=[4,2]T(1,0)}'\n"},
    {"inspect",
     "  reshard run --backend local --mesh x=2 'f32[64@x,48]' 'f32[64,48@x]' --output array.npy\n"
     "  reshard inspect array.npy\n"},
    {"convert",
     "  reshard run --backend local --mesh x=2 'f32[64@x,48]' 'f32[64,48@x]' --output whole.npy\n"
     "  reshard convert whole.npy columns.zarr --chunks 64,16 --memory 128MiB --verify\n"},
    {"live",
     "  reshard run --backend local --mesh x=2 'f32[64@x,48]' 'f32[64,48@x]' --output whole.npy\n"
     "  (reshard live publish whole.npy ./weights --readers 1 &) ; reshard live subscribe ./weights taken.npy\n"},
});

}  // namespace

void complete_help(CLI::App& app) {
    app.footer(footer);
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
        for (const auto& [name, lines] : examples)
            if (command->get_name() == name) command->footer(fmt::format("Examples:\n{}\n{}", lines, footer));
    }
}

}  // namespace reshard::cli
