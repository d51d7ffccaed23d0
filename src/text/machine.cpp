// Machines as text, and the built-in machines.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "reshard/planner/cost.hpp"
#include "src/base/try.hpp"
#include "src/text/scanner.hpp"

namespace reshard {

using notation::Scanner;
using notation::Unit;

namespace {

constexpr std::array<Unit, 5> times = {
    {{"ps", 1}, {"ns", 1'000}, {"us", 1'000'000}, {"ms", 1'000'000'000}, {"s", 1'000'000'000'000}}};
constexpr std::array<Unit, 7> rates = {{{"B", 1},
                                        {"KB", 1'000},
                                        {"MB", 1'000'000},
                                        {"GB", 1'000'000'000},
                                        {"TB", 1'000'000'000'000},
                                        {"PB", 1'000'000'000'000'000},
                                        {"EB", 1'000'000'000'000'000'000}}};

Result<Index> scan_time(Scanner& scanner) { return notation::scan_quantity(scanner, "a time", times); }

Result<Index> scan_rate(Scanner& scanner) {
    const std::size_t begin = scanner.place();
    RESHARD_TRY(const auto& rate, notation::scan_quantity(scanner, "a rate", rates));
    if (!scanner.take('/') || scanner.word() != "s") return scanner.error(Code::syntax, "expected /s");
    if (rate == 0) return scanner.error(Code::mesh, "a rate of 0", begin);
    return rate;
}

// The rest of a line after its first word: a name up to the next space.
std::string scan_name(Scanner& scanner) {
    std::string name;
    const std::string_view text = scanner.text();
    for (std::size_t i = scanner.place(); i < text.size() && text[i] > ' '; ++i) name += text[i];
    return name;
}

// Reads a field of a level, by its kind.
Result<void> scan_devices_into(Scanner& scanner, Index& devices) {
    const std::size_t place = scanner.offset();
    const bool all = scanner.word() == "all";
    RESHARD_ASSIGN(devices, all ? index_max : scanner.integer("the devices of a level"));
    if (devices < 1) return scanner.error(Code::mesh, "a level has at least one device", place);
    return {};
}
Result<void> scan_time_into(Scanner& scanner, Index& time) {
    RESHARD_ASSIGN(time, scan_time(scanner));
    return {};
}
Result<void> scan_rate_into(Scanner& scanner, Index& rate) {
    RESHARD_ASSIGN(rate, scan_rate(scanner));
    return {};
}
Result<void> scan_flag_into(Scanner&, bool& flag) {
    flag = true;
    return {};
}

Result<void> scan_label_into(Scanner&, std::string&) { return {}; }  // the name is read before the fields

constexpr bool is_field(std::string_view kind) { return kind != "label"; }

// All words of a level, or only the needed ones: "devices, message and bandwidth".
std::string level_words(bool needed_only, std::string_view last) {
    std::vector<std::string_view> words;
#define RESHARD_LEVEL(kind, name, text, needed) \
    if ((needed || !needed_only) && is_field(#kind)) words.push_back(#text);
#include "src/tables/levels.def"
    std::string all;
    for (std::size_t i = 0; i < words.size(); ++i)
        all += fmt::format("{}{}", i == 0 ? "" : i + 1 < words.size() ? ", " : fmt::format(" {} ", last), words[i]);
    return all;
}

Result<Level> scan_level(Scanner& scanner) {
    Level level;
    level.name = scanner.word();
    if (level.name.empty()) return scanner.error(Code::syntax, "expected the level's name");
    std::set<std::string_view> given;
    while (!scanner.at_end()) {
        const std::size_t begin = scanner.offset();
        const std::string_view word = scanner.word();
        given.insert(word);
#define RESHARD_LEVEL(kind, name, text, ...)                    \
    if (word == #text && is_field(#kind)) {                     \
        RESHARD_CHECK(scan_##kind##_into(scanner, level.name)); \
        continue;                                               \
    }
#include "src/tables/levels.def"
        return scanner.error(Code::syntax, "expected " + level_words(false, "or"), begin);
    }
#define RESHARD_LEVEL(kind, name, text, needed)              \
    if (needed && is_field(#kind) && !given.contains(#text)) \
        return scanner.error(Code::syntax, "a level needs " + level_words(true, "and"));
#include "src/tables/levels.def"
    return level;
}

// The cost of each run of a copy beside its bytes; 0 at the end of the line.
Result<Index> scan_run(Scanner& scanner) {
    if (scanner.at_end()) return 0;
    const std::size_t begin = scanner.offset();
    if (scanner.word() != "run") return scanner.error(Code::syntax, "expected run, or the end of the line", begin);
    RESHARD_TRY(const auto& time, scan_time(scanner));
    RESHARD_CHECK(scanner.expect_end());
    return time;
}

Result<void> scan_piece(Scanner& scanner, Machine& machine) {
    RESHARD_ASSIGN(machine.piece_ps, scan_time(scanner));
    if (scanner.word() != "slowed") return scanner.error(Code::syntax, "expected slowed, and a percentage from 100 on");
    RESHARD_ASSIGN(machine.slowed_percent, scanner.integer("a percentage"));
    if (machine.slowed_percent < 100) return scanner.error(Code::mesh, "work beside a transfer is not faster for it");
    RESHARD_CHECK(scanner.expect('%'));
    return scanner.expect_end();
}

std::string format_label(const std::string& name) { return " " + name; }
std::string format_devices(Index devices) { return devices == index_max ? " all" : fmt::format(" {}", devices); }
std::string format_flag(bool) { return ""; }  // its word says it

bool nests(const Machine& machine, const Level& level) {
    if (machine.levels.empty()) return true;
    const Index inner = machine.levels.back().devices;
    return inner < level.devices && (level.devices == index_max || level.devices % inner == 0);
}

std::string format_time(Index ps) {
    for (auto unit = times.rbegin(); unit != times.rend(); ++unit)
        if (ps % unit->factor == 0 && ps != 0) return fmt::format(" {}{}", ps / unit->factor, unit->name);
    return " 0ps";
}

std::string format_rate(Index rate) {
    for (auto unit = rates.rbegin(); unit != rates.rend(); ++unit)
        if (rate % unit->factor == 0) return fmt::format(" {}{}/s", rate / unit->factor, unit->name);
    return fmt::format(" {}B/s", rate);
}

}  // namespace

Result<Machine> parse_machine(std::string_view text) {
    Machine machine;
    bool copies = false;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::size_t line = begin;
        Scanner scanner(text.substr(line, end - line));
        // Errors are placed in the whole text.
        const auto placed = [&](Error error) {
            return tl::unexpected(Error{error.code, std::move(error.message), std::string(text), line + error.offset});
        };
        begin = end + 1;
        if (scanner.at_end() || scanner.sees('#')) continue;
        const std::string_view word = scanner.word();
        if (word == "machine") {
            machine.name = scan_name(scanner);
        } else if (word == "level") {
            const auto level = scan_level(scanner);
            if (!level) return placed(level.error());
            if (!nests(machine, *level))
                return placed({Code::mesh, "a level must be a multiple of the one inside it, and larger", "", 0});
            machine.levels.push_back(*level);
        } else if (word == "copy") {
            const auto rate = scan_rate(scanner);
            if (!rate) return placed(rate.error());
            machine.copy_bytes_per_second = *rate;
            const auto run = scan_run(scanner);
            if (!run) return placed(run.error());
            machine.copy_run_ps = *run;
            copies = true;
        } else if (word == "piece") {
            const auto scanned = scan_piece(scanner, machine);
            if (!scanned) return placed(scanned.error());
        } else {
            return placed({Code::syntax, "expected machine, level, copy or piece", "", 0});
        }
    }
    if (machine.name.empty() || machine.levels.empty() || !copies)
        return tl::unexpected(
            Error{Code::syntax, "a machine needs a name, at least one level and a copy rate", std::string(text), 0});
    return machine;
}

std::string format(const Machine& machine) {
    std::string text = fmt::format("machine {}\n", machine.name);
    for (const Level& level : machine.levels) {
        std::string line;
#define RESHARD_LEVEL(kind, name, text, needed) \
    if (needed || level.name != Level{}.name) line += " " #text + format_##kind(level.name);
#include "src/tables/levels.def"
        text += line.substr(1) + "\n";
    }
    text += fmt::format("copy{}", format_rate(machine.copy_bytes_per_second));
    if (machine.copy_run_ps != 0) text += fmt::format(" run{}", format_time(machine.copy_run_ps));
    text += '\n';
    if (machine.piece_ps != 0 || machine.slowed_percent != 100)
        text += fmt::format("piece{} slowed {}%\n", format_time(machine.piece_ps), machine.slowed_percent);
    return text;
}

Machine laptop() {
    // Eight ranks on two cores moving 256 MiB by point to point: about 2 GB/s a rank; a message through shared memory
    // takes about 1 us; plain copies run at 10 GB/s a core. Four ranks on two cores take 10 ns more for each run of 16
    // bytes, so a core of its own 5 (bench/README.md).
    return {"laptop", {{"node", index_max, 1'000'000, 2'000'000'000}}, 10'000'000'000, 5'000};
}

namespace {

constexpr Index ns = 1'000;
constexpr Index us = 1'000'000;
constexpr Index gb_per_s = 1'000'000'000;

// A run that does not end where the memory's transactions do takes part of one more of them.
constexpr Index transaction_ps(Index bytes, Index bytes_per_second) {
    return bytes * 1'000'000 / (bytes_per_second / 1'000'000);
}

// DGX H100, 8 GPUs a node. NVLink: 450 GB/s one way by specification, 370 reached (ASTRA-sim's validated HGX-H100
// file); an NCCL all-to-all starts in about 7 us and takes 0.7 us a peer. InfiniBand: 400 Gb/s a GPU, 48 GB/s reached;
// NCCL's simple protocol takes 14 us a hop, posting 1-2 us. Copies: about 3 TB/s read and written, so half of that; in
// transactions of 32 bytes (NVIDIA's CUDA C++ best practices, 10.2.1).
Machine dgx_h100(std::string name, Index nodes) {
    Machine machine{std::move(name),
                    {{"nvlink", 8, 700 * ns, 370 * gb_per_s, 7 * us}},
                    1500 * gb_per_s,
                    transaction_ps(32, 1500 * gb_per_s)};
    if (nodes > 1) machine.levels.push_back({"infiniband", 8 * nodes, 1500 * ns, 48 * gb_per_s, 14 * us});
    return machine;
}

// TPU v5p, a torus of A x B x C: 90 GB/s a link and direction, two links an axis, 1 us a hop (Google's v5p page; the
// scaling book). Rings are taken as switches of both links' rate: right for gathers and reduce-scatters, too kind to
// all-to-alls over long rings. Copies: 2.77 TB/s of memory, half of it for each way; arrays lie in rows of 128 elements
// of 4 bytes (XLA's page on tiled layouts).
Machine tpu_v5p(std::string name, Index a, Index b, Index c) {
    Machine machine{std::move(name), {}, 1385 * gb_per_s, transaction_ps(512, 1385 * gb_per_s)};
    Index devices = 1;
    for (const auto& [axis, size] : {std::pair{"z", c}, std::pair{"y", b}, std::pair{"x", a}}) {
        devices *= size;
        if (size > 1) machine.levels.push_back({axis, devices, 1 * us, 180 * gb_per_s, 2 * us});
    }
    if (machine.levels.empty()) machine.levels.push_back({"chip", 1, 1 * us, 180 * gb_per_s});
    return machine;
}

// Nodes of `per_node` ranks on 100 Gb/s Ethernet, one card a node: 11.5 GB/s with RDMA, about 6 with TCP and many
// flows, which is taken here; 30 us a message over TCP (NCCL issue 464 and the figures above). Inside as `laptop`.
Machine ethernet(std::string name, Index nodes, Index per_node) {
    Machine machine{std::move(name), {}, laptop().copy_bytes_per_second, laptop().copy_run_ps};
    if (per_node > 1) machine.levels.push_back({"node", per_node, 1 * us, 2 * gb_per_s});
    if (nodes > 1 || per_node == 1)
        machine.levels.push_back({"ethernet", nodes * per_node, 30 * us, 6 * gb_per_s, 0, per_node > 1});
    return machine;
}

// AMD Instinct MI300X, 8 GPUs, each with a link of Infinity Fabric to each other one: 64 GB/s one way by AMD's data
// sheet, about 50 reached by RCCL (ScalarLM's measurements on 8 x MI300X), so 350 over all seven. Messages and start as
// of a kernel of NCCL on NVLink, which RCCL shares. Copies: 5.3 TB/s of memory by the data sheet, about 4 reached
// (rocm_bandwidth_test), half of it for each way; in cache lines of 128 bytes (AMD's CDNA 3 white paper).
Machine mi300x(std::string name) {
    return {std::move(name),
            {{"fabric", 8, 700 * ns, 350 * gb_per_s, 7 * us, false, 50 * gb_per_s}},
            2000 * gb_per_s,
            transaction_ps(128, 2000 * gb_per_s)};
}

// p3.8xlarge, the hosts of Alpa's measurements of moves between meshes (Zhuang et al., MLSys 2023): 4 V100s over
// NVLink, 150 GB/s one way of a GPU by NVIDIA's data sheet, about 130 reached; a network card of 10 Gb/s a host (EC2's
// table of instances), 30 us a message over TCP as `ethernet`. Copies: 900 GB/s of memory by the data sheet, half of it
// for each way; transactions as `dgx-h100`.
Machine p3_8xlarge(std::string name, Index hosts) {
    Machine machine{std::move(name),
                    {{"nvlink", 4, 700 * ns, 130 * gb_per_s, 7 * us}},
                    450 * gb_per_s,
                    transaction_ps(32, 450 * gb_per_s)};
    if (hosts > 1) machine.levels.push_back({"ethernet", 4 * hosts, 30 * us, gb_per_s * 5 / 4, 0, true});
    return machine;
}

constexpr Index nodes_max = 1 << 20;

// "word=" count, at most nodes_max.
Result<Index> scan_count(Scanner& scanner, std::string_view word) {
    const std::size_t begin = scanner.place();
    if (!word.empty() && (scanner.word() != word || !scanner.take('=')))
        return scanner.error(Code::syntax, fmt::format("expected {}=", word), begin);
    const auto count = scanner.integer("a count");
    if (count && (*count < 1 || *count > nodes_max))
        return scanner.error(Code::syntax, fmt::format("a count from 1 to {}", nodes_max), begin);
    return count;
}

}  // namespace

Result<Machine> make_machine(std::string_view specification) {
    const std::size_t colon = std::min(specification.find(':'), specification.size());
    const std::string_view kind = specification.substr(0, colon);
    const std::string name(specification);
    Scanner scanner(specification.substr(std::min(colon + 1, specification.size())));
    std::vector<Index> counts;
    const auto scan = [&](std::string_view word, char before) -> Result<void> {
        if (before != 0) RESHARD_CHECK(scanner.expect(before));
        RESHARD_TRY(const auto& count, scan_count(scanner, word));
        counts.push_back(count);
        return {};
    };
    Result<void> scanned;
    if (kind == "dgx-h100") {
        scanned = scan("nodes", 0);
    } else if (kind == "ethernet") {
        scanned = scan("nodes", 0);
        if (scanned) scanned = scan("per_node", ',');
    } else if (kind == "tpu-v5p") {
        for (const char before : {'\0', 'x', 'x'})
            if (scanned) scanned = scan("", before);
    } else if (kind == "p3.8xlarge") {
        scanned = scan("hosts", 0);
    } else if ((kind != "laptop" && kind != "mi300x") || colon != specification.size()) {
        return fail(Code::syntax, fmt::format("'{}' is no machine: laptop, dgx-h100:nodes=N, tpu-v5p:AxBxC, "
                                              "ethernet:nodes=N,per_node=P, mi300x, p3.8xlarge:hosts=N",
                                              specification.substr(0, 60)));
    }
    if (scanned) scanned = scanner.expect_end();
    if (!scanned) return tl::unexpected(scanned.error());
    if (kind == "dgx-h100") return dgx_h100(name, counts[0]);
    if (kind == "ethernet") return ethernet(name, counts[0], counts[1]);
    if (kind == "tpu-v5p") return tpu_v5p(name, counts[0], counts[1], counts[2]);
    if (kind == "p3.8xlarge") return p3_8xlarge(name, counts[0]);
    return kind == "mi300x" ? mi300x(name) : laptop();
}

}  // namespace reshard
