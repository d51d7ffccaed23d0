#include "tool/request/halo_request.hpp"

#include <algorithm>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/console/exit.hpp"

namespace reshard::cli {
namespace {

bool has_halo(const std::string& text) { return text.find('~') != std::string::npos; }

// The machine decides the price. All other options choose among plans, and halos have none.
Result<void> only_the_machine(const Question& question) {
    Question rest;
    rest.mesh = question.mesh;
    rest.target_mesh = question.target_mesh;
    rest.source = question.source;
    rest.target = question.target;
    rest.notation = question.notation;
    rest.machine = question.machine;
    if (question == rest) return {};
    return fail(Code::usage,
                "a target with halos takes --mesh, --target-mesh, --machine and --backend, and no option of plans");
}

}  // namespace

bool asks_for_halos(const Question& question) {
    if (question.notation && *question.notation != "jax") return false;
    return has_halo(question.source) || has_halo(question.target);
}

Result<HaloRequest> understand_halos(const Question& question) {
    RESHARD_CHECK(only_the_machine(question));
    RESHARD_TRY(const auto& mesh, in("mesh", parse_mesh(question.mesh)));
    RESHARD_TRY(const auto& target_mesh, in("target mesh", parse_mesh(question.target_mesh.value_or(question.mesh))));
    RESHARD_TRY(auto& source, in("source", parse_halo_layout(mesh, question.source)));
    RESHARD_TRY(auto& target, in("target", parse_halo_layout(target_mesh, question.target)));
    Options options;
    RESHARD_CHECK(read_options(question, options));
    HaloRequest asked{{std::move(target)}, std::move(options.machine)};
    const bool no_halo = std::ranges::count(source.halos, Halo{}) == std::ssize(source.halos);
    if (source == asked.move.target || (no_halo && source.owned == asked.move.target.owned)) return asked;
    asked.move.source = std::move(source.owned);
    if (!no_halo) asked.move.source_halos = std::move(source.halos);
    return asked;
}

HaloLayout source_of(const HaloMove& move) {
    if (move.source) return source_arrays(move);
    return {move.target.owned, std::vector<Halo>(move.target.halos.size())};
}

Index ranks_of(const HaloMove& move) {
    return std::max(world_size(source_of(move).owned.mesh), world_size(move.target.owned.mesh));
}

}  // namespace reshard::cli
