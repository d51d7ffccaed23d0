// The subcommands for targets with halos.
#include <fmt/format.h>

#include <algorithm>

#include "report/halo_table.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/schedule/wanted.hpp"
#include "tool/commands/certify.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/halos/halo_run.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

Json price_json(const HaloPrice& price) {
    return {{"way", name(price.way)},           {"rounds", price.rounds},
            {"messages", price.messages},       {"received_bytes", price.received_bytes},
            {"picoseconds", price.picoseconds}, {"exact", price.exact}};
}

Json halo_json(const HaloRequest& asked, const HaloPlan& plan) {
    Json json;
    json["schema"] = 1;
    const HaloLayout source = source_of(asked.move);
    json["mesh"] = format(source.owned.mesh);
    json["source"] = format(source);
    json["target_mesh"] = format(asked.move.target.owned.mesh);
    json["target"] = format(asked.move.target);
    json["in_place"] = !asked.move.source;
    json["machine"] = asked.machine.name;
    json["way"] = name(plan.way);
    json["ways"] = Json::array();
    for (const HaloPrice& price : plan.prices) json["ways"].push_back(price_json(price));
    return json;
}

Result<std::unique_ptr<Ranks>> ranks_for(const Arguments& arguments, const HaloRequest& asked) {
    return make_ranks(arguments.backend, ranks_of(asked.move), std::chrono::seconds(arguments.timeout),
                      arguments.ranks_per_node);
}

Result<int> run_rank(Rank& rank, const Arguments& arguments, const HaloRequest& asked, const HaloPlan& plan,
                     const std::string& backend) {
    RESHARD_TRY(auto& fill, HaloRun::make(rank, asked, plan.way));
    RESHARD_TRY(const auto& seconds, fill->fill(rank));
    const Verified verified = fill->verify(rank);
    const Index received = fill->received_bytes(rank);
    if (rank.index() == 0 && arguments.json) {
        Json json = halo_json(asked, plan);
        json["backend"] = backend;
        json["ranks"] = rank.size();
        json["seconds"] = seconds;
        json["received_bytes"] = received;
        json["wrong"] = verified.wrong;
        json["cells_verified"] = verified.of;
        answer(line(json));
    } else if (rank.index() == 0) {
        answer(halo_table(asked.move, plan, asked.machine, page()));
        const std::string transport = fill->transport().empty() ? "" : ": " + fill->transport();
        answer(fmt::format("ran on {} ranks, {}{}\n", rank.size(), backend, transport));
        answer(fmt::format("received {}   measured {}   {} of {} cells wrong\n", format_bytes(received),
                           format_seconds(seconds), verified.wrong, verified.of));
    }
    return verified.wrong == 0 ? exit_ok : exit_wrong;
}

// One way to fill, measured.
struct Measured {
    std::unique_ptr<HaloRun> run;
    HaloPrice price;
    std::vector<double> seconds;
    Verified verified;
};

Result<std::vector<Measured>> measure(Rank& rank, const HaloRequest& asked, const HaloPlan& plan, Index rounds) {
    std::vector<Measured> ways;
    for (const HaloPrice& price : plan.prices) {
        RESHARD_TRY(auto& made, HaloRun::make(rank, asked, price.way));
        ways.push_back({std::move(made), price, {}, {}});
    }
    for (Index round = 0; round <= rounds; ++round)
        for (Measured& way : ways) {
            RESHARD_TRY(const auto& seconds, way.run->fill(rank));
            const Verified verified = way.run->verify(rank);
            way.verified = {way.verified.wrong + verified.wrong, way.verified.of + verified.of};
            if (round > 0) way.seconds.push_back(seconds);  // the first fill touches the memory
        }
    return ways;
}

std::string measured_table(const std::vector<Measured>& ways) {
    Table table({"way", ">median", "[min, max]", ">estimate", ">received", ">wrong"});
    for (const Measured& way : ways) {
        const auto [least, most] = std::ranges::minmax(way.seconds);
        table.row({std::string(name(way.price.way)), format_seconds(median(way.seconds)),
                   fmt::format("[{}, {}]", format_seconds(least), format_seconds(most)),
                   format_picoseconds(way.price.picoseconds), format_bytes(way.price.received_bytes),
                   std::to_string(way.verified.wrong)});
    }
    return table.text(page());
}

Result<int> bench_rank(Rank& rank, const Arguments& arguments, const HaloRequest& asked, const HaloPlan& plan,
                       const std::string& backend) {
    RESHARD_TRY(const auto& ways, measure(rank, asked, plan, arguments.rounds));
    Index wrong = 0;
    for (const Measured& way : ways) wrong += way.verified.wrong;
    if (rank.index() == 0 && arguments.json) {
        Json json = halo_json(asked, plan);
        json["backend"] = backend;
        json["ranks"] = rank.size();
        json["rounds"] = arguments.rounds;
        json["contestants"] = Json::array();
        for (const Measured& way : ways)
            json["contestants"].push_back({{"way", name(way.price.way)},
                                           {"seconds_median", median(way.seconds)},
                                           {"seconds", way.seconds},
                                           {"wrong", way.verified.wrong},
                                           {"cells_verified", way.verified.of}});
        answer(line(json));
    } else if (rank.index() == 0) {
        answer(fmt::format("{}   {} ranks   {}   runs {}\n", format(asked.move.target), rank.size(), backend,
                           name(plan.way)));
        answer(measured_table(ways));
        answer(fmt::format("{} timed rounds each, in turn; every cell was compared\n", arguments.rounds));
    }
    return wrong == 0 ? exit_ok : exit_wrong;
}

// The bytes that a device receives, by the proved checker. The plan must say the same.
Result<Index> certified_bytes(const HaloRequest& asked, const HaloPlan& plan, const std::string& checker) {
    if (plan.way == HaloWay::by_dimension)
        return fail(Code::unsupported,
                    "--certify judges fills that run all at once; this one runs dimension by "
                    "dimension");
    const HaloLayout& target = asked.move.target;
    RESHARD_TRY(const auto& boxes, owned_boxes(asked.move.source.value_or(target.owned), target));
    RESHARD_TRY(const auto& elements, certify(boxes, checker));
    const Index bytes = elements * size_of(target.owned.dtype);
    if (bytes == plan.prices.front().received_bytes) return bytes;
    return fail(Code::plan, fmt::format("the proved checker says that a device receives {}, the plan says {}",
                                        format_bytes(bytes), format_bytes(plan.prices.front().received_bytes)));
}

Result<int> on_ranks(const Arguments& arguments, decltype(&run_rank) body) {
    RESHARD_TRY(const auto& asked, understand_halos(arguments.question));
    for (const std::string* const text : {&arguments.input, &arguments.output, &arguments.tiles, &arguments.dtype})
        if (!text->empty()) return fail(Code::usage, "halos are filled with generated data: no --input, no output");
    RESHARD_TRY(auto& ranks, ranks_for(arguments, asked));
    RESHARD_TRY(const auto& plan, plan_halo(asked.move, asked.machine, ranks->capabilities()));
    return ranks->each(arguments.json, [&](Rank& rank) { return body(rank, arguments, asked, plan, ranks->name()); });
}

}  // namespace

Result<int> plan_halos(const Arguments& arguments) {
    RESHARD_TRY(const auto& asked, understand_halos(arguments.question));
    RESHARD_TRY(const auto& able, capabilities_of(arguments.backend, ranks_of(asked.move), arguments.ranks_per_node));
    RESHARD_TRY(const auto& plan, plan_halo(asked.move, asked.machine, able));
    Json json = halo_json(asked, plan);
    std::string certified;
    if (arguments.certify) {
        RESHARD_TRY(const auto& bytes, certified_bytes(asked, plan, arguments.checker));
        json["certified"] = {{"claim", "proved optimal"}, {"received_bytes", bytes}};
        certified = fmt::format("certified: {}   received at most {} a device\n", green("proved optimal", page()),
                                format_bytes(bytes));
    }
    return answer(arguments.json ? line(json) : halo_table(asked.move, plan, asked.machine, page()) + certified);
}

Result<int> draw_halos(const Arguments& arguments) {
    RESHARD_TRY(const auto& asked, understand_halos(arguments.question));
    if (arguments.json) return fail(Code::unsupported, "halos are drawn as text or with --svg, not as JSON");
    RESHARD_TRY(const auto& picture,
                arguments.svg ? halo_svg(asked.move.target) : halo_picture(asked.move.target, page()));
    return answer(picture);
}

Result<int> run_halos(const Arguments& arguments) { return on_ranks(arguments, run_rank); }

Result<int> bench_halos(const Arguments& arguments) { return on_ranks(arguments, bench_rank); }

}  // namespace reshard::cli
