// A user's ten lines: plan a move, judge it, print it.
#include <cstdio>
#include <reshard/backends/local.hpp>
#include <reshard/reshard.hpp>

int main() {
    const reshard::Mesh mesh{{"x", 2}, {"y", 3}};
    const auto source = reshard::parse_layout(mesh, "f32[12@x,4]").value();
    const auto target = reshard::parse_layout(mesh, "f32[12@y,4]").value();
    const auto made = reshard::synthesize(source, target).value();
    const auto verdict = reshard::check(made.plan()).value();
    reshard::local::World world(6);
    const auto executor = reshard::Executor::prepare(judge(made.plan(), world.rank(0).capabilities()), world.rank(0));
    std::printf("%speak %lld bytes\n", reshard::format(made.plan()).c_str(),
                static_cast<long long>(verdict.peak_bytes));
    return executor && verdict.peak_bytes == 96 ? 0 : 1;
}
