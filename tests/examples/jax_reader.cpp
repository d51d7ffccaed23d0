// For a reader of JAX: types as `jax.typeof` prints them, a plan you can look at, and its cost before a byte moves.
#include <cstdio>

#include <reshard/reshard.hpp>

using namespace reshard;

int main() {
    // [README jax]
    Mesh mesh{{"x", 2}, {"y", 3}};
    Layout source = make_layout(mesh, DType::f32, {12288, 4096}, P{"x", {}}).value();  // PartitionSpec("x", None)
    Layout target = parse_layout(mesh, "f32[12288@y,4096]").value();                   // or as JAX prints the type
    Synthesis made = synthesize(source, target, {.vocabulary = Vocabulary::collectives}).value();
    std::puts(format(made.plan()).c_str());  // slice, permute, all_gather
    std::printf("receives %s a device, at least %s whatever the protocol; peak %s\n",
                format_bytes(made.verdict().received_bytes_max_device).c_str(),
                format_bytes(made.verdict().lower_bound_bytes).c_str(),
                format_bytes(made.verdict().peak_bytes).c_str());
    // [README jax end]
    return made.optimal && made.verdict().peak_bytes == made.verdict().floor_bytes ? 0 : 1;
}
