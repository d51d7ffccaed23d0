#include "bench/halos/ways.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

namespace reshard::bench {
namespace {

// A box of cells in the array of a rank.
struct Part {
    Ints begin;
    Ints size;
    [[nodiscard]] int count() const { return std::accumulate(size.begin(), size.end(), 1, std::multiplies<>()); }
};

MPI_Datatype type_of(const Setting& setting, const Part& part) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const Ints shape = setting.wide();
    MPI_Type_create_subarray(static_cast<int>(shape.size()), shape.data(), part.size.data(), part.begin.data(),
                             MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

// The messages to and from the neighbour at `step`. `whole`: dimensions that move with their halos.
struct Link {
    int peer = 0;
    int tag = 0;
    Part sent;
    Part received;
    MPI_Datatype sent_type = MPI_DATATYPE_NULL;
    MPI_Datatype received_type = MPI_DATATYPE_NULL;
};

Link link_to(const Setting& setting, const Ints& step, std::size_t whole, int tag) {
    Link link{setting.neighbour(step), tag, {}, {}};
    for (std::size_t k = 0; k < step.size(); ++k) {
        const int block = setting.wide()[k] - 2 * setting.halo;
        const int inside = k < whole ? 0 : setting.halo;
        const int size = step[k] != 0 ? setting.halo : block + 2 * (setting.halo - inside);
        link.sent.begin.push_back(step[k] > 0 ? block : step[k] < 0 ? setting.halo : inside);
        link.received.begin.push_back(step[k] > 0 ? block + setting.halo : step[k] < 0 ? 0 : inside);
        link.sent.size.push_back(size);
        link.received.size.push_back(size);
    }
    link.sent_type = type_of(setting, link.sent);
    link.received_type = type_of(setting, link.received);
    return link;
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

// A link for each of the neighbours, corners too. The tag is the direction of travel.
std::vector<Link> all_links(const Setting& setting) {
    std::vector<Link> links;
    const std::vector<Ints> steps = steps_of(setting.extents.size());
    for (std::size_t i = 0; i < steps.size(); ++i) links.push_back(link_to(setting, steps[i], 0, static_cast<int>(i)));
    return links;
}

}  // namespace

Fill all_at_once(const Setting& setting, double* array) {
    return [links = all_links(setting), array, comm = setting.grid_ranks] {
        std::vector<MPI_Request> requests;
        const int last = static_cast<int>(links.size()) - 1;
        for (const Link& one : links)
            MPI_Irecv(array, 1, one.received_type, one.peer, last - one.tag, comm, &requests.emplace_back());
        for (const Link& one : links)
            MPI_Isend(array, 1, one.sent_type, one.peer, one.tag, comm, &requests.emplace_back());
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    };
}

namespace {

// A box of three dimensions in memory, as a hand-written code has it.
struct Cells {
    double* start = nullptr;
    std::array<std::ptrdiff_t, 2> strides = {};  // of the outer dimensions; the last one is dense
};

std::array<int, 3> in_three(const Ints& extents) {
    std::array<int, 3> three = {1, 1, 1};
    std::ranges::copy(extents, three.end() - std::ssize(extents));
    return three;
}

Cells cells_of(const Ints& shape, const Ints& begin, double* array) {
    const auto extents = in_three(shape);
    std::ptrdiff_t at = 0;
    for (std::size_t k = 0; k < shape.size(); ++k) at = at * shape[k] + begin[k];
    return {array + at, {std::ptrdiff_t{extents[1]} * extents[2], extents[2]}};
}

Cells dense(const Part& part, double* buffer) {
    const auto extents = in_three(part.size);
    return {buffer, {std::ptrdiff_t{extents[1]} * extents[2], extents[2]}};
}

template <int cells>
void copy_rows(const std::array<int, 3>& size, const Cells& from, const Cells& to) {
    for (int i = 0; i < size[0]; ++i)
        for (int j = 0; j < size[1]; ++j) {
            const double* const a = from.start + i * from.strides[0] + j * from.strides[1];
            double* const b = to.start + i * to.strides[0] + j * to.strides[1];
            if constexpr (cells > 0)
                for (int k = 0; k < cells; ++k) b[k] = a[k];
            else
                std::memcpy(b, a, sizeof(double) * static_cast<std::size_t>(size[2]));
        }
}

void copy(const Part& part, const Cells& from, const Cells& to) {
    const auto size = in_three(part.size);
    if (size[2] == 1) return copy_rows<1>(size, from, to);
    if (size[2] == 2) return copy_rows<2>(size, from, to);
    copy_rows<0>(size, from, to);
}

}  // namespace

// A part is unpacked when it has come.
Fill packed(const Setting& setting, double* array) {
    struct Buffers {
        std::vector<std::vector<double>> sent, received;
        std::vector<MPI_Request> sends, receives;
    };
    const std::vector<Link> links = all_links(setting);
    auto buffers = std::make_shared<Buffers>();
    for (const Link& one : links) {
        buffers->sent.emplace_back(one.sent.count());
        buffers->received.emplace_back(one.received.count());
    }
    buffers->sends.resize(links.size());
    buffers->receives.resize(links.size());
    return [links, buffers, array, shape = setting.wide(), comm = setting.grid_ranks] {
        const int all = static_cast<int>(links.size());
        for (std::size_t i = 0; i < links.size(); ++i)
            MPI_Irecv(buffers->received[i].data(), links[i].received.count(), MPI_DOUBLE, links[i].peer,
                      all - 1 - links[i].tag, comm, &buffers->receives[i]);
        for (std::size_t i = 0; i < links.size(); ++i) {
            copy(links[i].sent, cells_of(shape, links[i].sent.begin, array),
                 dense(links[i].sent, buffers->sent[i].data()));
            MPI_Isend(buffers->sent[i].data(), links[i].sent.count(), MPI_DOUBLE, links[i].peer, links[i].tag, comm,
                      &buffers->sends[i]);
        }
        for (int left = all; left > 0; --left) {
            int come = 0;
            MPI_Waitany(all, buffers->receives.data(), &come, MPI_STATUS_IGNORE);
            const Part& part = links[static_cast<std::size_t>(come)].received;
            copy(part, dense(part, buffers->received[static_cast<std::size_t>(come)].data()),
                 cells_of(shape, part.begin, array));
        }
        MPI_Waitall(all, buffers->sends.data(), MPI_STATUSES_IGNORE);
    };
}

// One edge of a graph for each pair of ranks. All parts of a pair are one type, in the order of travel.
Fill neighbour_collective(const Setting& setting, double* array) {
    const std::vector<Link> links = all_links(setting);
    std::map<int, std::vector<MPI_Datatype>> sent, received;
    for (const Link& one : links) sent[one.peer].push_back(one.sent_type);
    for (std::size_t i = links.size(); i-- > 0;) received[links[i].peer].push_back(links[i].received_type);
    struct Side {
        Ints peers, ones;
        std::vector<MPI_Aint> starts;
        std::vector<MPI_Datatype> types;
    };
    const auto side = [](const std::map<int, std::vector<MPI_Datatype>>& parts) {
        Side made;
        for (const auto& [peer, types] : parts) {
            const Ints ones(types.size(), 1);
            const std::vector<MPI_Aint> starts(types.size(), 0);
            made.peers.push_back(peer);
            MPI_Type_create_struct(static_cast<int>(types.size()), ones.data(), starts.data(), types.data(),
                                   &made.types.emplace_back());
            MPI_Type_commit(&made.types.back());
        }
        made.ones.assign(made.peers.size(), 1);
        made.starts.assign(made.peers.size(), 0);
        return made;
    };
    const Side to = side(sent), from = side(received);
    MPI_Comm graph = MPI_COMM_NULL;
    MPI_Dist_graph_create_adjacent(setting.grid_ranks, static_cast<int>(from.peers.size()), from.peers.data(),
                                   MPI_UNWEIGHTED, static_cast<int>(to.peers.size()), to.peers.data(), MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    return [to, from, graph, array] {
        MPI_Neighbor_alltoallw(array, to.ones.data(), to.starts.data(), to.types.data(), array, from.ones.data(),
                               from.starts.data(), from.types.data(), graph);
    };
}

namespace {

// Memory of each rank that all others reach.
struct Window {
    MPI_Win handle = MPI_WIN_NULL;
    std::byte* own = nullptr;

    Window(MPI_Comm comm, std::size_t bytes) {
        MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, comm, &own, &handle);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, handle);
        std::memset(own, 0, bytes);
        MPI_Barrier(comm);
    }
    [[nodiscard]] std::byte* of(int rank) const {
        MPI_Aint bytes = 0;
        int unit = 0;
        std::byte* start = nullptr;
        MPI_Win_shared_query(handle, rank, &bytes, &unit, &start);
        return start;
    }
};

// Two counters of each rank, in a cache line of its own. A rank polls the counters of its neighbours.
class Flags {
public:
    explicit Flags(const Setting& setting) : window_(setting.grid_ranks, 2 * sizeof(Line)), own_(line_in(window_.own)) {
        std::set<int> peers;
        for (const Link& one : all_links(setting)) peers.insert(one.peer);
        for (const int peer : peers)
            if (Line* const theirs = line_in(window_.of(peer)); theirs != own_) peers_.push_back(theirs);
        int ranks = 0;
        MPI_Comm_size(setting.grid_ranks, &ranks);
        crowded_ = ranks > static_cast<int>(std::thread::hardware_concurrency());
    }
    void enter() { meet(&Line::entered, ++run_); }
    void leave() { meet(&Line::done, run_); }

private:
    struct alignas(64) Line {
        std::atomic<std::uint64_t> entered, done;
    };
    static Line* line_in(std::byte* start) {
        const auto past = reinterpret_cast<std::uintptr_t>(start) % sizeof(Line);
        return reinterpret_cast<Line*>(start + (sizeof(Line) - past) % sizeof(Line));
    }
    void meet(std::atomic<std::uint64_t> Line::*flag, std::uint64_t value) {
        (own_->*flag).store(value, std::memory_order_release);
        for (const Line* const peer : peers_)
            while ((peer->*flag).load(std::memory_order_acquire) < value)
                if (crowded_) std::this_thread::yield();
    }

    Window window_;
    Line* own_;
    std::vector<Line*> peers_;
    std::uint64_t run_ = 0;
    bool crowded_ = false;  // ranks share cores, so a rank that waits lets the others run
};

std::string name_of(Meeting meeting) {
    if (meeting == Meeting::barriers) return std::string(window_name);
    return meeting == Meeting::flags ? "two flags" : "copies alone";
}

}  // namespace

Contestant in_window(const Setting& setting, std::size_t cells, Meeting meeting) {
    const Window window(setting.grid_ranks, cells * sizeof(double));
    auto* const own = reinterpret_cast<double*>(window.own);
    struct Read {
        double* peer;
        Part from, to;
    };
    std::vector<Read> reads;
    for (const Link& one : all_links(setting)) {
        Read read{reinterpret_cast<double*>(window.of(one.peer)), one.sent, one.received};
        for (std::size_t k = 0; k < read.to.begin.size(); ++k) {
            const int block = setting.wide()[k] - 2 * setting.halo;
            if (read.to.begin[k] < setting.halo) read.from.begin[k] = block;
            if (read.to.begin[k] >= setting.halo + block) read.from.begin[k] = setting.halo;
        }
        reads.push_back(read);
    }
    const auto read = [reads, own, shape = setting.wide()] {
        for (const Read& one : reads)
            copy(one.to, cells_of(shape, one.from.begin, one.peer), cells_of(shape, one.to.begin, own));
    };
    Fill fill = read;
    if (meeting == Meeting::barriers)
        fill = [read, window = window.handle, comm = setting.grid_ranks] {
            MPI_Win_sync(window);
            MPI_Barrier(comm);
            read();
            MPI_Win_sync(window);
            MPI_Barrier(comm);
        };
    if (meeting == Meeting::flags)
        fill = [read, flags = std::make_shared<Flags>(setting)] {
            flags->enter();
            read();
            flags->leave();
        };
    return {name_of(meeting), own, fill};
}

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
            MPI_Sendrecv(array, 1, down.sent_type, down.peer, 0, array, 1, up.received_type, up.peer, 0, comm,
                         MPI_STATUS_IGNORE);
            MPI_Sendrecv(array, 1, up.sent_type, up.peer, 1, array, 1, down.received_type, down.peer, 1, comm,
                         MPI_STATUS_IGNORE);
        }
    };
}

Fill persistent(const Setting& setting, double* array) {
    auto rounds = std::make_shared<std::vector<std::array<MPI_Request, 4>>>();
    for (std::size_t k = 0; k < setting.extents.size(); ++k) {
        Ints down(setting.extents.size(), 0), up = down;
        down[k] = -1;
        up[k] = 1;
        const Link low = link_to(setting, down, k, 0), high = link_to(setting, up, k, 1);
        auto& round = rounds->emplace_back();
        MPI_Recv_init(array, 1, high.received_type, high.peer, 2, setting.grid_ranks, round.data());
        MPI_Recv_init(array, 1, low.received_type, low.peer, 3, setting.grid_ranks, &round[1]);
        MPI_Send_init(array, 1, low.sent_type, low.peer, 2, setting.grid_ranks, &round[2]);
        MPI_Send_init(array, 1, high.sent_type, high.peer, 3, setting.grid_ranks, &round[3]);
    }
    return [rounds] {
        for (auto& round : *rounds) {
            MPI_Startall(4, round.data());
            MPI_Waitall(4, round.data(), MPI_STATUSES_IGNORE);
        }
    };
}

}  // namespace reshard::bench
