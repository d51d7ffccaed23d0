// Fills of a periodic halo with corners, in place: HaloExchange beside three ways of MPI. All run in one launch, take
// turns, and are checked before they are timed.
//   mpirun -n 4 halo_fills [EXTENTS HALO ROUNDS]      EXTENTS: 64,64,64
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reshard/backends/mpi.hpp"
#include "reshard/halo/exchange.hpp"
#include "reshard/text.hpp"

namespace {

using namespace reshard;
using Ints = std::vector<int>;

struct Setting {
    Ints extents;
    Ints grid;
    Ints at;  // this rank's place in the grid
    int halo = 1;
    MPI_Comm grid_ranks = MPI_COMM_NULL;

    [[nodiscard]] Ints wide() const {
        Ints shape;
        for (std::size_t k = 0; k < extents.size(); ++k) shape.push_back(extents[k] / grid[k] + 2 * halo);
        return shape;
    }
    [[nodiscard]] int neighbour(const Ints& step) const {
        Ints place = at;
        for (std::size_t k = 0; k < at.size(); ++k) place[k] = (at[k] + step[k] + grid[k]) % grid[k];
        int rank = 0;
        MPI_Cart_rank(grid_ranks, place.data(), &rank);
        return rank;
    }
};

MPI_Datatype part(const Setting& setting, const Ints& begin, const Ints& size) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const Ints shape = setting.wide();
    MPI_Type_create_subarray(static_cast<int>(shape.size()), shape.data(), size.data(), begin.data(), MPI_ORDER_C,
                             MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

// The messages to and from the neighbour at `step`. `whole`: dimensions that move with their halos.
struct Link {
    int peer = 0;
    MPI_Datatype sent = MPI_DATATYPE_NULL;
    MPI_Datatype received = MPI_DATATYPE_NULL;
    int tag = 0;
};

Link link_to(const Setting& setting, const Ints& step, std::size_t whole, int tag) {
    Ints sent, received, size;
    for (std::size_t k = 0; k < step.size(); ++k) {
        const int block = setting.wide()[k] - 2 * setting.halo;
        const int inside = k < whole ? 0 : setting.halo;
        size.push_back(step[k] != 0 ? setting.halo : block + 2 * (setting.halo - inside));
        sent.push_back(step[k] > 0 ? block : step[k] < 0 ? setting.halo : inside);
        received.push_back(step[k] > 0 ? block + setting.halo : step[k] < 0 ? 0 : inside);
    }
    return {setting.neighbour(step), part(setting, sent, size), part(setting, received, size), tag};
}

std::vector<Ints> steps_of(std::size_t dims) {
    std::vector<Ints> steps = {{}};
    for (std::size_t k = 0; k < dims; ++k) {
        std::vector<Ints> longer;
        for (const Ints& step : steps)
            for (const int one : {-1, 0, 1}) {
                longer.push_back(step);
                longer.back().push_back(one);
            }
        steps = std::move(longer);
    }
    std::erase(steps, Ints(dims, 0));
    return steps;
}

using Fill = std::function<void()>;
struct Contestant {
    std::string name;
    double* array;
    Fill fill;
    double best = 1e9;
};

// A message for each of the neighbours, corners too. The tag is the direction of travel.
Fill all_at_once(const Setting& setting, double* array) {
    std::vector<Link> links;
    const std::vector<Ints> steps = steps_of(setting.extents.size());
    for (std::size_t i = 0; i < steps.size(); ++i) links.push_back(link_to(setting, steps[i], 0, static_cast<int>(i)));
    return [links, array, comm = setting.grid_ranks] {
        std::vector<MPI_Request> requests;
        const int last = static_cast<int>(links.size()) - 1;
        for (const Link& one : links)
            MPI_Irecv(array, 1, one.received, one.peer, last - one.tag, comm, &requests.emplace_back());
        for (const Link& one : links) MPI_Isend(array, 1, one.sent, one.peer, one.tag, comm, &requests.emplace_back());
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    };
}

// Two messages in each dimension. Later dimensions carry the halos of earlier ones, so corners come along.
Fill dim_by_dim(const Setting& setting, double* array) {
    std::vector<std::array<Link, 2>> rounds;
    for (std::size_t k = 0; k < setting.extents.size(); ++k) {
        Ints down(setting.extents.size(), 0), up = down;
        down[k] = -1;
        up[k] = 1;
        rounds.push_back({link_to(setting, down, k, 0), link_to(setting, up, k, 1)});
    }
    return [rounds, array, comm = setting.grid_ranks] {
        for (const auto& [down, up] : rounds) {
            MPI_Sendrecv(array, 1, down.sent, down.peer, 0, array, 1, up.received, up.peer, 0, comm, MPI_STATUS_IGNORE);
            MPI_Sendrecv(array, 1, up.sent, up.peer, 1, array, 1, down.received, down.peer, 1, comm, MPI_STATUS_IGNORE);
        }
    };
}

// The same dimension by dimension, prepared once.
Fill persistent(const Setting& setting, double* array) {
    auto rounds = std::make_shared<std::vector<std::array<MPI_Request, 4>>>();
    for (std::size_t k = 0; k < setting.extents.size(); ++k) {
        Ints down(setting.extents.size(), 0), up = down;
        down[k] = -1;
        up[k] = 1;
        const Link low = link_to(setting, down, k, 0), high = link_to(setting, up, k, 1);
        auto& round = rounds->emplace_back();
        MPI_Recv_init(array, 1, high.received, high.peer, 2, setting.grid_ranks, round.data());
        MPI_Recv_init(array, 1, low.received, low.peer, 3, setting.grid_ranks, &round[1]);
        MPI_Send_init(array, 1, low.sent, low.peer, 2, setting.grid_ranks, &round[2]);
        MPI_Send_init(array, 1, high.sent, high.peer, 3, setting.grid_ranks, &round[3]);
    }
    return [rounds] {
        for (auto& round : *rounds) {
            MPI_Startall(4, round.data());
            MPI_Waitall(4, round.data(), MPI_STATUSES_IGNORE);
        }
    };
}

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

bool check(const Setting& setting, const Contestant& one, std::size_t cells) {
    for (std::size_t cell = 0; cell < cells; ++cell)
        one.array[cell] = is_block(setting, cell) ? wanted(setting, cell) : -1;
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
    auto exchange = HaloExchange::prepare(layout, *backend).value();
    std::vector<std::unique_ptr<Memory>> held;
    std::vector<Contestant> all;
    const auto array = [&] {
        held.push_back(backend->allocate(static_cast<Index>(cells * sizeof(double))).value());
        return reinterpret_cast<double*>(held.back()->bytes().data());
    };
    double* const own = array();
    const Buffers buffers{{}, held.back()->bytes(), {}};
    const auto bound = exchange.bind(std::span(&buffers, 1)).value();
    all.push_back({"HaloExchange", own, [&] {
                       const auto ticket = bound->start();
                       if (!ticket || !(*ticket)->wait()) MPI_Abort(MPI_COMM_WORLD, 1);
                   }});
    const auto add = [&](const char* name, Fill (*make)(const Setting&, double*)) {
        double* const theirs = array();
        all.push_back({name, theirs, make(setting, theirs)});
    };
    add("MPI, all at once", all_at_once);
    add("MPI, dim by dim", dim_by_dim);
    add("MPI, persistent", persistent);
    for (const Contestant& one : all) {
        if (check(setting, one, cells)) continue;
        std::printf("%s fills wrong cells\n", one.name.c_str());
        return 1;
    }
    constexpr int batch = 5;
    for (int round = 0; round < rounds; ++round) {
        for (Contestant& one : all) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = MPI_Wtime();
            for (int i = 0; i < batch; ++i) one.fill();
            double seconds = (MPI_Wtime() - begin) / batch;
            MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            one.best = std::min(one.best, seconds);
        }
    }
    if (backend->rank() != 0) return 0;
    double best = 1e9;
    for (const Contestant& one : all) {
        if (&one != all.data()) best = std::min(best, one.best);
        std::printf("%-17s %9.1f us\n", one.name.c_str(), one.best * 1e6);
    }
    std::printf("f64[%s] on %s: the best way of MPI takes %.2f times as long\n", dims.c_str(), axes.c_str(),
                best / all.front().best);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int failed = run(argc, argv);
    MPI_Finalize();
    return failed;
}
