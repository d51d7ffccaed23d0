// Every way to redistribute an array, against each other, in one process a rank: interleaved round by round, every
// result checked, one line of JSON a problem on stdout. Run it under mpirun on 8, 4 or 2 ranks; report.py makes tables
// and plots of its output.
#include <fmt/format.h>
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "redistribution/contestants.hpp"
#ifdef RESHARD_HAS_SCALAPACK
#include "redistribution/gemr2d.hpp"
#endif
#include "reshard/backends/mpi.hpp"
#include "src/copy/kernels/dispatch.hpp"

namespace reshard::bench {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Arguments {
    int rounds = 31;
    Index bounce_bytes = 0;  // 0: as the library has it
    std::string only;        // problems whose name has it
    std::string contestant;  // likewise
    Index divisor = 1;       // of each extent
    int rounds_slow = 3;     // of a contestant that is out of the race
    double slow = 2.5;       // times the fastest of its kind
};

struct Record {
    std::vector<double> seconds;   // a round; NaN where it took no part
    double processor_seconds = 0;  // of all ranks in all rounds
    Index wrong = 0;
    Index verified = 0;
};

double largest(double mine) {
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

Index sum(Index mine) {
    Index all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

// Of the rounds in which it took part; 0 without any.
double median_taken(std::vector<double> values) {
    std::erase_if(values, [](double value) { return value != value; });
    return values.empty() ? 0 : median(std::move(values));
}

// Busy seconds of the machine since it started, and of this process.
double machine_seconds() {
    std::ifstream file("/proc/stat");
    std::string word;
    file >> word;
    double busy = 0;
    double ticks = 0;
    for (int column = 0; column < 8 && file >> ticks; ++column) {
        if (column != 3 && column != 4) busy += ticks;
    }
    return busy / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_seconds() {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}

void verify(const Case& one, Entry& entry, Record& record) {
    if (entry.kind == Kind::roofline) return;
    record.wrong += sum(count_wrong(one, entry.contestant->target()));
    record.verified += sum(target_elements(one));
}

// From the first rank to leave the barrier to the last rank to end: the ranks of one machine share its clock, and one
// that gets its core late must not hide that.
double timed(Contestant& contestant) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    contestant.run();
    const double end = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    const double first = -largest(-begin);
    return largest(end) - first;
}

// The first round touches memory for the first time. Its results are checked, and so are the last round's. If arrays
// fit the caches, every timed run follows a run of the same contestant: some contestants share their buffers, and only
// they would find them warm.
std::vector<Record> race(const Case& one, std::vector<Entry>& entries, const Arguments& arguments) {
    std::vector<Record> records(entries.size());
    std::vector<std::size_t> order;
    const bool cached = sum(one.whole.source_bytes + one.whole.target_bytes) < last_cache_bytes();
    for (std::size_t i = 0; i < entries.size(); ++i) {
        order.push_back(i);
        fill(one, entries[i].contestant->source());
        wipe(entries[i].contestant->target());
        timed(*entries[i].contestant);
        verify(one, entries[i], records[i]);
    }
    std::vector<char> out(entries.size());
    for (int round = 0; round < arguments.rounds; ++round) {
        for (const std::size_t i : order) {
            if (cached && out[i] == 0) entries[i].contestant->run();
            const double busy = own_seconds();
            records[i].seconds.push_back(out[i] != 0 ? std::nan("") : timed(*entries[i].contestant));
            records[i].processor_seconds += own_seconds() - busy;
        }
        if (!order.empty()) std::rotate(order.begin(), order.begin() + 1, order.end());  // nobody is always first
        if (round + 1 != arguments.rounds_slow) continue;
        double fastest = 1e9;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (entries[i].kind == Kind::mpi) fastest = std::min(fastest, median_taken(records[i].seconds));
        }
        for (std::size_t i = 0; i < entries.size(); ++i) {
            out[i] = entries[i].kind == Kind::mpi && median_taken(records[i].seconds) > arguments.slow * fastest;
        }
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
        wipe(entries[i].contestant->target());
        timed(*entries[i].contestant);
        verify(one, entries[i], records[i]);
    }
    return records;
}

// Processor time of all ranks for a round: the cost of a move, independent of other users of the machine.
double processor_seconds(const Record& record) {
    double all = record.processor_seconds;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const auto rounds = std::ranges::count_if(record.seconds, [](double value) { return value == value; });
    return all / static_cast<double>(std::max<std::ptrdiff_t>(rounds, 1));
}

Json json_of(const Case& one, std::vector<Entry>& entries, const std::vector<Record>& records, double foreign) {
    Json json = {{"problem", one.question.name},
                 {"mesh", one.question.mesh},
                 {"source", one.question.source},
                 {"target", one.question.target},
                 {"stored", one.question.turned ? "column-major" : "row-major"},
                 {"target_bytes", sum(one.whole.target_bytes)},
                 {"foreign_load", foreign},
                 {"contestants", Json::array()}};
    for (std::size_t i = 0; i < entries.size(); ++i) {
        Json seconds = Json::array();
        for (const double value : records[i].seconds) seconds.push_back(value == value ? Json(value) : Json());
        const Entry& entry = entries[i];
        const char* kind = entry.kind == Kind::mpi ? "mpi" : entry.kind == Kind::plan ? "plan" : "roofline";
        json["contestants"].push_back(
            {{"name", entry.name},
             {"kind", kind},
             {"note", entry.contestant->note()},
             {"seconds", seconds},
             {"extra_bytes_max", largest(static_cast<double>(entry.contestant->extra_bytes()))},
             {"processor_seconds", processor_seconds(records[i])},
             {"wrong", records[i].wrong},
             {"verified", records[i].verified}});
    }
    return json;
}

Result<Json> measure(const Question& question, const Arguments& arguments, Backend& backend,
                     const mpi::Options& options) {
    const auto one = make_case(question, backend.rank());
    if (!one) return tl::unexpected(one.error());
    Pair own{Buffer(one->whole.source_bytes), Buffer(one->whole.target_bytes)};
    std::vector<Entry> entries = contestants(*one, backend, options, own);
#ifdef RESHARD_HAS_SCALAPACK
    if (auto one_more = gemr2d(*one, own)) entries.push_back({"ScaLAPACK p?gemr2d", Kind::mpi, std::move(one_more)});
#endif
    std::erase_if(entries,
                  [&](const Entry& entry) { return entry.name.find(arguments.contestant) == std::string::npos; });
    const double machine = machine_seconds();
    const double mine = own_seconds();
    const auto begin = Clock::now();
    const std::vector<Record> records = race(*one, entries, arguments);
    const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    double ours = own_seconds() - mine;
    MPI_Allreduce(MPI_IN_PLACE, &ours, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const double cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
    return json_of(*one, entries, records, (machine_seconds() - machine - ours) / (elapsed * cores));
}

int measure_all(const Arguments& arguments) {
    mpi::Options options;
    if (arguments.bounce_bytes > 0) options.bounce_bytes = arguments.bounce_bytes;
    auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
    if (!backend) {
        fmt::print(stderr, "{}\n", backend.error().message);
        return 3;
    }
    const bool first = (*backend)->rank() == 0;
    Index wrong = 0;
    for (const Question& question : questions(static_cast<int>((*backend)->size()), arguments.divisor)) {
        if (question.name.find(arguments.only) == std::string::npos) continue;
        if (first) fmt::print(stderr, "{}\n", question.name);
        auto json = measure(question, arguments, **backend, options);
        if (!json) {
            fmt::print(stderr, "{}: {}\n", question.name, json.error().message);
            return 3;
        }
        for (const Json& one : (*json)["contestants"]) wrong += one["wrong"].get<Index>();
        const Json line = {{"ranks", (*backend)->size()},
                           {"rounds", arguments.rounds},
                           {"kernels", copy_kernels().name},
                           {"last_cache_bytes", last_cache_bytes()},
                           {"problems", Json::array({std::move(*json)})}};
        if (first) fmt::print("{}\n", line.dump());
        std::fflush(stdout);
    }
    return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace reshard::bench

// redistribution [--rounds N] [--only TEXT] [--contestant TEXT] [--bounce BYTES] [--divide N]
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    reshard::bench::Arguments arguments;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string option = argv[i];
        if (option == "--rounds") arguments.rounds = std::atoi(argv[i + 1]);
        if (option == "--bounce") arguments.bounce_bytes = std::atoll(argv[i + 1]);
        if (option == "--only") arguments.only = argv[i + 1];
        if (option == "--contestant") arguments.contestant = argv[i + 1];
        if (option == "--divide") arguments.divisor = std::max(1, std::atoi(argv[i + 1]));
    }
    const int code = reshard::bench::measure_all(arguments);
    MPI_Finalize();
    return code;
}
