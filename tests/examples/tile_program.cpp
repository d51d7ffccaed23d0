// docs/portable.md: a plan as operations on the local tile, and as a module for JAX.
#include <cstdio>
#include <reshard/reshard.hpp>
#include "reshard/emit/write.hpp"
using namespace reshard;

int main() {
    const Mesh mesh{{"x", 2}, {"y", 4}};
    const Layout source = make_layout(mesh, DType::f32, {1024, 8, 1024}, P{{}, "x", "y"}).value();
    const Layout target = make_layout(mesh, DType::f32, {1024, 8, 1024}, P{{"x", "y"}, {}, {}}).value();
    // [README tile_program]
    Problem problem{source, target};
    Synthesis made = synthesize(problem, {.vocabulary = Vocabulary::collectives}).value();
    TileProgram program = portable(made.plan(), problem).value();
    for (const Operation& operation : program.operations) std::puts(format(operation).c_str());
    std::puts(write(program, Framework::jax).value().c_str());
    // [README tile_program end]
}
