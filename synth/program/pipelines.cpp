// Pipelines of stages. An activation lives from the forward task of its microbatch to the last task that uses it.
#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "synth/program/parameters.hpp"

namespace reshard::program {
namespace {

// F is a forward task, B a backward task. W computes the gradient of the weights if B computes only the input's.
struct Cell {
    char kind = 'F';
    Index stage = 0;
    Index batch = 0;
    friend auto operator<=>(const Cell&, const Cell&) = default;
};
using Row = std::vector<Cell>;  // of one mesh, in its order

Row gpipe_row(Index stage, Index batches) {
    Row row;
    for (Index m = 0; m < batches; ++m) row.push_back({'F', stage, m});
    for (Index m = batches; m-- > 0;) row.push_back({'B', stage, m});
    return row;
}

// `warm` forwards, then backward and forward in turns. A weight gradient follows `late` backwards after its own.
Row one_to_one_row(Index stage, Index batches, Index warm, std::optional<Index> late) {
    Row row;
    Index forward = 0;
    Index weight = 0;
    for (; forward < std::min(batches, warm); ++forward) row.push_back({'F', stage, forward});
    for (Index backward = 0; backward < batches; ++backward) {
        row.push_back({'B', stage, backward});
        if (late && backward >= *late) row.push_back({'W', stage, weight++});
        if (forward < batches) row.push_back({'F', stage, forward++});
    }
    while (late && weight < batches) row.push_back({'W', stage, weight++});
    return row;
}

// Megatron's interleaved 1F1B: several chunks of layers on a mesh, microbatches in groups of one for each mesh.
Row interleaved_row(Index mesh, Index meshes, Index batches, Index chunks) {
    std::vector<std::pair<Index, Index>> order;  // chunk, microbatch
    for (Index group = 0; group < batches; group += meshes)
        for (Index chunk = 0; chunk < chunks; ++chunk)
            for (Index m = group; m < std::min(batches, group + meshes); ++m) order.emplace_back(chunk, m);
    const Index all = static_cast<Index>(order.size());
    const Index warm = std::min(all, (meshes - mesh - 1) * 2 + (chunks - 1) * meshes);
    Row row;
    const auto forward = [&](Index k) {
        const auto [chunk, m] = order[static_cast<std::size_t>(k)];
        row.push_back({'F', chunk * meshes + mesh, m});
    };
    for (Index k = 0; k < warm; ++k) forward(k);
    for (Index k = 0; k < all; ++k) {
        if (warm + k < all) forward(warm + k);
        const auto [chunk, m] = order[static_cast<std::size_t>(k)];
        row.push_back({'B', (chunks - 1 - chunk) * meshes + mesh, m});
    }
    return row;
}

class Pipeline {
public:
    Pipeline(std::string_view kind, const Parameters& given)
        : kind_(kind),
          given_(given),
          meshes_(given["stages"]),
          batches_(given["microbatches"]),
          chunks_(kind == "interleaved" ? given["chunks"] : 1),
          split_(kind == "zero_bubble") {}

    Result<Program> run() {
        std::vector<Row> rows;
        for (Index i = 0; i < meshes_; ++i) rows.push_back(row(i));
        // A row goes on if its next task has its inputs.
        std::vector<std::size_t> at(rows.size());
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                if (at[i] == rows[i].size() || !ready(rows[i][at[i]])) continue;
                add(rows[i][at[i]++]);
                moved = true;
            }
        }
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (at[i] != rows[i].size()) return fail(Code::usage, "the rows of this pipeline wait for each other");
        add_limits();
        return std::move(program_);
    }

private:
    [[nodiscard]] Index stages() const { return meshes_ * chunks_; }
    [[nodiscard]] Mesh mesh(Index stage) const {
        return devices_from(stage % meshes_ * given_["width"], given_["width"]);
    }

    [[nodiscard]] Row row(Index i) const {
        if (kind_ == "gpipe") return gpipe_row(i, batches_);
        if (kind_ == "eager") return one_to_one_row(i, batches_, 2 * (meshes_ - i) - 1, std::nullopt);
        if (kind_ == "interleaved") return interleaved_row(i, meshes_, batches_, chunks_);
        return one_to_one_row(i, batches_, meshes_ - i, split_ ? std::optional(i) : std::nullopt);
    }

    [[nodiscard]] bool ready(const Cell& cell) const {
        const auto& [kind, stage, batch] = cell;
        if (kind == 'F') return stage == 0 || done_.count({'F', stage - 1, batch}) > 0;
        if (kind == 'W') return done_.count({'B', stage, batch}) > 0;
        return done_.count({'F', stage, batch}) > 0 &&
               (stage + 1 == stages() || done_.count({'B', stage + 1, batch}) > 0);
    }

    void add(const Cell& cell) {
        const auto& [kind, stage, batch] = cell;
        const Mesh here = mesh(stage);
        const Layout message = bytes_on_each(here, given_["message"]);
        const Layout activation = bytes_on_each(here, given_["activation"]);
        const auto named = [&, m = batch](char array, Index s) { return fmt::format("{}{}.{}", array, s, m); };
        Task task{named(kind, stage), here, given_[kind == 'F' ? "forward" : kind == 'B' ? "backward" : "weight"]};
        const auto receive = [&](const std::string& array) {
            task.uses.push_back({array, message, false, given_.move_time()});
        };
        if (kind == 'F') {
            if (stage > 0) receive(named('x', stage));
            task.makes.push_back({named('a', stage), activation});
            if (stage + 1 < stages()) task.makes.push_back({named('x', stage + 1), message});
        } else {
            task.uses.push_back({named('a', stage), activation});
            if (kind == 'B' && stage + 1 < stages()) receive(named('g', stage + 1));
            if (kind == 'B' && stage > 0) task.makes.push_back({named('g', stage), message});
            if (kind == 'W') task.after.push_back(named('B', stage));
        }
        program_.tasks.push_back(std::move(task));
        done_.insert(cell);
    }

    // `activations` on the first mesh, one on the last, evenly between; or as many everywhere. Messages have room.
    void add_limits() {
        const Index first = given_["activations"];
        if (first == 0) return;
        const Index room = 4 * batches_ * chunks_ * given_["message"];
        for (Index i = 0; i < meshes_; ++i) {
            const Index steps = std::max(Index{1}, meshes_ - 1);
            const Index fallen =
                given_["everywhere"] != 0 ? first : ((first - 1) * (meshes_ - 1 - i) * 2 + steps) / (2 * steps) + 1;
            program_.limits.push_back({mesh(i), fallen * given_["activation"] + room});
        }
    }

    std::string_view kind_;
    const Parameters& given_;
    Index meshes_, batches_, chunks_;
    bool split_;
    std::set<Cell> done_;
    Program program_;
};

}  // namespace

Result<Program> pipeline(std::string_view kind, const Parameters& given) { return Pipeline(kind, given).run(); }

}  // namespace reshard::program
