#include "tool/request/halo_request.hpp"

#include <fmt/format.h>

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
    rest.source = question.source;
    rest.target = question.target;
    rest.notation = question.notation;
    rest.machine = question.machine;
    if (question == rest) return {};
    return fail(Code::usage, "a target with halos takes --mesh, --machine and --backend, and no option of plans");
}

}  // namespace

bool asks_for_halos(const Question& question) {
    if (question.notation && *question.notation != "jax") return false;
    return has_halo(question.source) || has_halo(question.target);
}

Result<HaloRequest> understand_halos(const Question& question) {
    RESHARD_CHECK(only_the_machine(question));
    if (has_halo(question.source))
        return fail(Code::unsupported,
                    fmt::format("the source {} has a halo; only a target may have one", question.source));
    RESHARD_TRY(const auto& mesh, in("mesh", parse_mesh(question.mesh)));
    RESHARD_TRY(auto& source, in("source", parse_layout(mesh, question.source)));
    RESHARD_TRY(auto& target, in("target", parse_halo_layout(mesh, question.target)));
    Options options;
    RESHARD_CHECK(read_options(question, options));
    HaloRequest asked{{std::move(target), std::nullopt}, std::move(options.machine)};
    if (source != asked.move.target.owned) asked.move.source = std::move(source);
    return asked;
}

const Layout& source_of(const HaloRequest& asked) {
    return asked.move.source ? *asked.move.source : asked.move.target.owned;
}

}  // namespace reshard::cli
