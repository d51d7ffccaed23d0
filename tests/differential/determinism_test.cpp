// The same problem has the same plan on every rank, run, compiler and optimization level. One number over 10,000 plans
// shows that a plan changed; the first 50 plans, in plans.txt, show how. When the synthesizer learns something new,
// RESHARD_UPDATE=1 writes plans.txt again, and the test prints the number to put here.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard::test {
namespace {

constexpr std::uint64_t written_down = 0x6b1f8090a3c340a7u;

/// A generator of our own: the standard distributions differ from library to library.
class Draw {
public:
    std::size_t below(std::size_t bound) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::size_t>(state_ >> 33) % bound;
    }

private:
    std::uint64_t state_ = 20211203;
};

Layout draw_layout(Draw& draw, const Mesh& mesh, const std::vector<Index>& extents) {
    P spec(extents.size());
    std::vector<std::size_t> axes(mesh.axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = i;
    for (std::size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[draw.below(i)]);
    for (const std::size_t axis : axes)
        if (const std::size_t dim = draw.below(extents.size() + 1); dim < extents.size())
            spec[dim].axes.push_back(mesh.axes[axis].name);
    return *make_layout(mesh, DType::f32, extents, spec);
}

constexpr const char* plans_file = RESHARD_TESTS_DIR "/differential/plans.txt";
constexpr int plans_written_down = 50;

std::string contents(const char* path) {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
}

std::uint64_t fold(std::uint64_t sum, std::uint64_t word) { return (sum ^ word) * 0x100000001b3u; }

TEST(Determinism, TenThousandQuestionsHaveTheAnswersWrittenDown) {
    const std::array<Mesh, 5> meshes = {Mesh{{"x", 2}, {"y", 3}}, Mesh{{"x", 4}, {"y", 2}, {"z", 2}},
                                        Mesh{{"x", 6}, {"y", 4}}, Mesh{{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}},
                                        Mesh{{"node", 4}, {"gpu", 8}}};
    const std::array<std::vector<Index>, 4> shapes = {
        std::vector<Index>{4608}, {960, 96}, {64, 24, 48}, {36, 10}};  // the last does not divide
    Draw draw;
    std::uint64_t sum = 0xcbf29ce484222325u;
    std::string plans;
    for (int question = 0; question < 10000; ++question) {
        const Mesh& mesh = meshes[draw.below(meshes.size())];
        const std::vector<Index>& extents = shapes[draw.below(shapes.size())];
        const Layout source = draw_layout(draw, mesh, extents);
        const Layout target = draw_layout(draw, mesh, extents);
        Options options;
        options.objective = static_cast<Objective>(draw.below(3));
        options.vocabulary = static_cast<Vocabulary>(draw.below(2));
        if (draw.below(2) == 0) options.machine = *make_machine("dgx-h100:nodes=4");
        const auto made = synthesize(source, target, options);
        if (question < plans_written_down) plans += (made ? format(made->plan()) : made.error().message + "\n") + "\n";
        sum = fold(sum, made ? fingerprint(made->plan()) : 1);
        sum = fold(sum, made ? static_cast<std::uint64_t>(made->picoseconds) : 1);
    }
    if (std::getenv("RESHARD_UPDATE") != nullptr) std::ofstream(plans_file) << plans;
    EXPECT_EQ(plans, contents(plans_file));
    EXPECT_EQ(sum, written_down) << "the number is now 0x" << std::hex << sum;
}

}  // namespace
}  // namespace reshard::test
