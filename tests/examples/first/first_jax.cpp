// The first task of a reader of JAX: what a reshard costs.
// [README first_jax]
#include <cstdio>
#include <reshard/reshard.hpp>
using namespace reshard;

int main() {
    Mesh mesh{{"x", 2}, {"y", 3}};
    Layout source = make_layout(mesh, DType::f32, {12288, 4096}, P{"x", {}}).value();  // P("x", None)
    Layout target = make_layout(mesh, DType::f32, {12288, 4096}, P{"y", {}}).value();  // P("y", None)
    Synthesis made = synthesize(source, target, {.vocabulary = Vocabulary::collectives}).value();
    Verdict naive = check(gather_then_slice({source, target}).value()).value();
    std::puts(format(made.plan()).c_str());
    for (const Verdict& cost : {made.verdict(), naive})
        std::printf("a device receives %s, at its peak it holds %s\n",
                    format_bytes(cost.received_bytes_max_device).c_str(), format_bytes(cost.peak_bytes).c_str());
}
// [README first_jax end]
