// Fills of a periodic halo with corners, in place: HaloExchange beside five ways to send messages with MPI, beside
// GHEX, and beside a shared window of MPI-3 with two barriers, with two flags, and with nothing. All run in one launch,
// take turns, and are checked before they are timed.
//   mpirun -n 4 halo_fills [EXTENTS HALO ROUNDS changed]      EXTENTS: 64,64,64
// With `changed` each rank adds 1 to all cells that other ranks read, before each fill and within its time, as the step
// of a program does. Without `changed` these cells do not change, so they stay in the neighbours' caches.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/halos/ways.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/halo/exchange.hpp"
#include "reshard/text.hpp"

namespace {

using namespace reshard;
using namespace reshard::bench;
// The number of the element in a cell, counted over the whole array.
double wanted(const Setting& setting, std::size_t cell) {
    const Ints shape = setting.wide();
    double number = 0, factor = 1;
    for (std::size_t k = shape.size(); k-- > 0; cell /= static_cast<std::size_t>(shape[k])) {
        const int block = shape[k] - 2 * setting.halo;
        const int index = static_cast<int>(cell % static_cast<std::size_t>(shape[k])) - setting.halo;
        number += factor * ((setting.at[k] * block + index + setting.extents[k]) % setting.extents[k]);
        factor *= setting.extents[k];
    }
    return number;
}

bool is_block(const Setting& setting, std::size_t cell) {
    const Ints shape = setting.wide();
    bool inside = true;
    for (std::size_t k = shape.size(); k-- > 0; cell /= static_cast<std::size_t>(shape[k])) {
        const int index = static_cast<int>(cell % static_cast<std::size_t>(shape[k]));
        inside = inside && index >= setting.halo && index < shape[k] - setting.halo;
    }
    return inside;
}

// The cells of a block that other ranks read, as runs: the first cell and the number of cells.
std::vector<std::pair<std::size_t, std::size_t>> read_by_others(const Setting& setting, std::size_t cells) {
    const Ints shape = setting.wide();
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    for (std::size_t cell = 0; cell < cells; ++cell) {
        bool is_read = false;
        for (std::size_t k = shape.size(), rest = cell; k-- > 0; rest /= static_cast<std::size_t>(shape[k])) {
            const int index = static_cast<int>(rest % static_cast<std::size_t>(shape[k]));
            const bool at_edge = index < 2 * setting.halo || index >= shape[k] - 2 * setting.halo;
            is_read = is_read || (setting.grid[k] > 1 && at_edge);
        }
        if (!is_read || !is_block(setting, cell)) continue;
        if (runs.empty() || runs.back().first + runs.back().second != cell) runs.emplace_back(cell, 0);
        ++runs.back().second;
    }
    return runs;
}

bool check(const Setting& setting, const Contestant& one, std::size_t cells) {
    for (std::size_t cell = 0; cell < cells; ++cell)
        one.array[cell] = is_block(setting, cell) ? wanted(setting, cell) : -1;
    MPI_Barrier(MPI_COMM_WORLD);  // copies alone wait for nobody
    one.fill();
    int wrong = 0;
    for (std::size_t cell = 0; cell < cells; ++cell) wrong += one.array[cell] == wanted(setting, cell) ? 0 : 1;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return wrong == 0;
}

Setting setting_of(int argc, char** argv) {
    Setting setting;
    std::string text = argc > 1 ? argv[1] : "64,64,64";
    for (char* at = text.data(); *at != '\0'; at += *at == ',' ? 1 : 0)
        setting.extents.push_back(static_cast<int>(std::strtol(at, &at, 10)));
    if (argc > 2) setting.halo = std::atoi(argv[2]);
    const int dims = static_cast<int>(setting.extents.size());
    int ranks = 0, rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    setting.grid.assign(setting.extents.size(), 0);
    MPI_Dims_create(ranks, dims, setting.grid.data());
    const Ints periods(setting.extents.size(), 1);
    MPI_Cart_create(MPI_COMM_WORLD, dims, setting.grid.data(), periods.data(), 0, &setting.grid_ranks);
    MPI_Comm_rank(setting.grid_ranks, &rank);
    setting.at.resize(setting.extents.size());
    MPI_Cart_coords(setting.grid_ranks, rank, dims, setting.at.data());
    return setting;
}

// All take turns. A first fill that is not timed brings the array of the contestant into the caches. `changed` lists
// runs of cells.
void measure(std::vector<Contestant>& all, int rounds, std::span<const std::pair<std::size_t, std::size_t>> changed) {
    constexpr int batch = 5;
    for (int round = 0; round < rounds; ++round) {
        for (Contestant& one : all) {
            const auto step = [&] {
                for (const auto& [begin, cells] : changed)
                    for (std::size_t i = 0; i < cells; ++i) one.array[begin + i] += 1;
                one.fill();
            };
            step();
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = MPI_Wtime();
            for (int i = 0; i < batch; ++i) step();
            double seconds = (MPI_Wtime() - begin) / batch;
            MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            one.seconds.push_back(seconds);
        }
    }
}

// The first contestant is ours. The names of the others say what they are.
void report(std::vector<Contestant>& all, const std::string& title) {
    std::vector<double> least, median;
    std::printf("%s\n %-17s %10s %10s\n", title.c_str(), "", "least, us", "median");
    for (Contestant& one : all) {
        std::ranges::sort(one.seconds);
        least.push_back(one.seconds.front());
        median.push_back(one.seconds[one.seconds.size() / 2]);
        std::printf(" %-17s %10.1f %10.1f\n", one.name.c_str(), least.back() * 1e6, median.back() * 1e6);
    }
    const auto ratios = [&](const std::vector<double>& seconds) {
        double messages = 1e9, window = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].name == window_name) window = seconds[i];
            if (all[i].name.starts_with("MPI, ")) messages = std::min(messages, seconds[i]);
        }
        return std::pair(messages / seconds.front(), window / seconds.front());
    };
    const auto [messages, window] = ratios(least);
    const auto [messages_median, window_median] = ratios(median);
    std::printf(" times as long: best messages %.2f (median %.2f)", messages, messages_median);
    if (window > 0) std::printf(", window %.2f (median %.2f)", window, window_median);
    std::printf("\n");
}

bool in_one_node() {
    MPI_Comm node = MPI_COMM_NULL;
    int near = 0, all = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &near);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    MPI_Comm_free(&node);
    return near == all;
}

// Our fill of one array in one way.
struct Own {
    HaloExchange exchange;
    std::unique_ptr<Memory> memory;
    std::unique_ptr<Bound> bound;

    Own(const HaloLayout& layout, HaloWay way, Backend& backend, std::size_t cells)
        : exchange(prepared(layout, way, backend)),
          memory(backend.allocate(static_cast<Index>(cells * sizeof(double))).value()) {
        const Buffers buffers{{}, memory->bytes(), {}};
        bound = exchange.bind(std::span(&buffers, 1)).value();
    }
    static HaloExchange prepared(const HaloLayout& layout, HaloWay way, Backend& backend) {
        const HaloMove move{layout, std::nullopt};
        return HaloExchange::prepare(std::span(&move, 1), backend, {}, {laptop(), way}).value();
    }
    [[nodiscard]] double* array() const { return reinterpret_cast<double*>(memory->bytes().data()); }
    void fill() {
        if (!exchange.run(std::span(array(), memory->bytes().size() / sizeof(double)))) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    void start_and_wait() const {
        const auto ticket = bound->start();
        if (!ticket || !(*ticket)->wait()) MPI_Abort(MPI_COMM_WORLD, 1);
    }
};

int run(int argc, char** argv) {
    const Setting setting = setting_of(argc, argv);
    const int rounds = argc > 3 ? std::atoi(argv[3]) : 200;
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    std::string axes, dims;
    std::size_t cells = 1;
    for (std::size_t k = 0; k < setting.extents.size(); ++k) {
        axes += (k > 0 ? "," : "") + ("a" + std::to_string(k)) + "=" + std::to_string(setting.grid[k]);
        dims += (k > 0 ? "," : "") + std::to_string(setting.extents[k]) + "@a" + std::to_string(k) + "~" +
                std::to_string(setting.halo) + "%";
        cells *= static_cast<std::size_t>(setting.wide()[k]);
    }
    const HaloLayout layout = parse_halo_layout(parse_mesh(axes).value(), "f64[" + dims + "]").value();
    Own at_once(layout, HaloWay::at_once, *backend, cells);
    const Own started(layout, HaloWay::at_once, *backend, cells);
    Own by_dimension(layout, HaloWay::by_dimension, *backend, cells);
    std::vector<Contestant> all;
    all.push_back({"HaloExchange", at_once.array(), [&] { at_once.fill(); }});
    all.push_back({"start and wait", started.array(), [&] { started.start_and_wait(); }});
    all.push_back({"by dimension", by_dimension.array(), [&] { by_dimension.fill(); }});
    std::vector<std::unique_ptr<Memory>> held;
    const auto add = [&](const char* name, Fill (*make)(const Setting&, double*)) {
        held.push_back(backend->allocate(static_cast<Index>(cells * sizeof(double))).value());
        auto* const theirs = reinterpret_cast<double*>(held.back()->bytes().data());
        if (Fill fill = make(setting, theirs)) all.push_back({name, theirs, std::move(fill)});
    };
    add("MPI, all at once", all_at_once);
    add("MPI, dim by dim", dim_by_dim);
    add("MPI, persistent", persistent);
    add("MPI, packed", packed);
    add("MPI, neighbours", neighbour_collective);
#ifdef RESHARD_HAS_GHEX
    add("GHEX", ghex_fill);
#endif
    if (in_one_node())
        for (const Meeting meeting : {Meeting::barriers, Meeting::flags, Meeting::none})
            all.push_back(in_window(setting, cells, meeting));
    for (const Contestant& one : all) {
        if (check(setting, one, cells)) continue;
        std::printf("%s fills wrong cells\n", one.name.c_str());
        return 1;
    }
    const bool changed = argc > 4;
    measure(all, rounds, changed ? read_by_others(setting, cells) : std::vector<std::pair<std::size_t, std::size_t>>());
    double received = static_cast<double>(at_once.exchange.received_bytes());
    MPI_Allreduce(MPI_IN_PLACE, &received, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (backend->rank() != 0) return 0;
    report(all, "f64[" + dims + "] on " + axes + (changed ? ", changed before each fill" : ""));
    std::printf(" a rank receives %.0f bytes\n", received);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int failed = run(argc, argv);
    MPI_Finalize();
    return failed;
}
