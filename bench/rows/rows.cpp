// The cost of the rows of a model: rows LIST RULES [layers]. One core, no cache except the schedule itself. With
// `layers` equal layers are understood once.
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>

#include "reshard/model/model_rows.hpp"

namespace reshard {
namespace {

// Processor time, since other programs may be running.
double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double milliseconds_since(double begin) { return now() - begin; }

std::string read(const char* path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

double mebibytes_held() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
}

// A device's tile, leaving out dimensions of one index, which only one end may have.
Tile matrix_of(const Layout& layout, Index device) {
    const Tile whole = tile(layout, device);
    if (count(whole) == 0) return {Side{}};
    Tile matrix;
    for (std::size_t k = 0; k < whole.size(); ++k)
        if (layout.dims[k].extent != 1) matrix.push_back(whole[k]);
    return matrix;
}

// Bytes that each rank wants and does not hold: no protocol moves less to it.
std::vector<Index> lower_bounds(const CheckpointMapping& model, Index ranks) {
    std::vector<Index> bytes(static_cast<std::size_t>(ranks), 0);
    for (const PartProblem& move : model.moves) {
        const Layout source = layout_of(move.source).value();
        const Layout target = layout_of(move.target).value();
        for (Index position = 0; position < device_count(target.mesh); ++position) {
            const Index rank = device_at(target.mesh, position);
            const Tile wanted = matrix_of(target, rank);
            const Tile held = matrix_of(source, rank);
            const Index both = count(held) == 0 ? 0 : count(intersect(wanted, held));
            bytes[static_cast<std::size_t>(rank)] += (count(wanted) - both) * size_of(target.dtype);
        }
    }
    return bytes;
}

// One rank's rows from the two texts, then the rows of all ranks.
int measure_layers(const char* list, const char* rules) {
    const std::string list_text = read(list);
    const std::string rules_text = read(rules);
    const double before = mebibytes_held();
    auto begin = now();
    const auto model = ModelRows::make(rules_text, list_text);
    if (!model) return std::cerr << describe(model.error()) << '\n', 1;
    const double made = milliseconds_since(begin);
    const std::size_t first = model->rows(0).size();
    const double one = milliseconds_since(begin);
    const double held = mebibytes_held();
    std::size_t rows = 0;
    for (Index rank = 0; rank < model->rank_count(); ++rank) rows += model->rows(rank).size();
    std::cout << fmt::format("{} moves, {} understood; made {:.1f} ms, with the {} rows of rank 0 {:.1f} ms\n",
                             model->array_count(), model->understood_count(), made, first, one);
    std::cout << fmt::format("all {} ranks {:.0f} ms, {} rows; the process held {:.1f} MiB, {:.1f} before\n",
                             model->rank_count(), milliseconds_since(begin), rows, held, before);
    return 0;
}

int measure(const char* list, const char* rules) {
    const std::string list_text = read(list);
    const std::string rules_text = read(rules);
    auto begin = now();
    const auto tensors = parse_tensors(list_text);
    if (!tensors) return std::cerr << describe(tensors.error()) << '\n', 1;
    const double listed = milliseconds_since(begin);
    begin = now();
    const auto model = apply_rules(rules_text, *tensors);
    if (!model) return std::cerr << describe(model.error()) << '\n', 1;
    const double ruled = milliseconds_since(begin);
    begin = now();
    const auto schedule = RowSchedule::make(model->moves);
    if (!schedule) return std::cerr << describe(schedule.error()) << '\n', 1;
    const double made = milliseconds_since(begin);
    const double held = mebibytes_held();
    std::cout << fmt::format("{} tensors become {} by {} moves, of which {} differ\n", tensors->size(),
                             model->targets.size(), schedule->array_count(), schedule->question_count());
    std::cout << fmt::format("list read {:.0f} ms, rules applied {:.0f} ms, schedule made {:.0f} ms; {:.0f} MiB\n",
                             listed, ruled, made, held);
    for (const RowSide side : {RowSide::send, RowSide::receive}) {
        std::vector<double> times;
        std::vector<std::vector<Row>> all;
        begin = now();
        for (Index rank = 0; rank < schedule->rank_count(); ++rank) {
            const auto one = now();
            all.push_back(schedule->rows(rank, side));
            times.push_back(milliseconds_since(one));
        }
        const double whole = milliseconds_since(begin);
        std::size_t rows = 0;
        std::vector<Index> moved(all.size(), 0);
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            rows += all[rank].size();
            for (const Row& row : all[rank])
                if (row.peer != static_cast<Index>(rank)) moved[rank] += row.runs * row.run_bytes;
        }
        std::cout << fmt::format(
            "{}: one rank {:.2f} ms at most, all {} ranks {:.0f} ms, {} rows of {} bytes ({:.1f} MiB)\n",
            side == RowSide::send ? "send" : "receive", *std::ranges::max_element(times), schedule->rank_count(), whole,
            rows, sizeof(Row), static_cast<double>(rows * sizeof(Row)) / (1 << 20));
        if (side == RowSide::send) {
            const Index most = *std::ranges::max_element(moved);
            Index total = 0, senders = 0;
            for (const Index bytes : moved) {
                total += bytes;
                senders += bytes > 0 ? 1 : 0;
            }
            std::cout << fmt::format("busiest sender {} bytes, the mean of {} senders {}\n", most, senders,
                                     total / std::max<Index>(senders, 1));
            continue;
        }
        const std::vector<Index> bounds = lower_bounds(*model, schedule->rank_count());
        double worst = 1;
        for (std::size_t rank = 0; rank < bounds.size(); ++rank)
            if (bounds[rank] > 0)
                worst = std::max(worst, static_cast<double>(moved[rank]) / static_cast<double>(bounds[rank]));
        std::cout << fmt::format("busiest receiver {} bytes, {:.4f} of the bound of any rank at most\n",
                                 *std::ranges::max_element(moved), worst);
    }
    return 0;
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) {
        std::cerr << "usage: rows LIST RULES [layers]\n";
        return 2;
    }
    if (argc == 4) return reshard::measure_layers(argv[1], argv[2]);
    return reshard::measure(argv[1], argv[2]);
}
