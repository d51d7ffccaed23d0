// Element types that are only copied, from the sources of a job to its targets.
#include <fmt/format.h>

#include "files/formats/json_text.hpp"
#include "files/formats/npy.hpp"
#include "files/wanted.hpp"
#include "src/base/try.hpp"
#include "src/model/rules/name_pattern.hpp"

namespace reshard::files {

namespace {

Result<bool> is_cast(const std::string& name, std::span<const Cast> casts) {
    for (const Cast& cast : casts) {
        notation::Scanner scanner(cast.pattern);
        RESHARD_TRY(const auto& pattern, notation::NamePattern::scan(scanner));
        notation::Bindings bindings;
        if (pattern.match(name, bindings)) return true;
    }
    return false;
}

std::string type_of(const FileType& type, DType dtype) {
    return type.name.empty() ? std::string(name(dtype)) : type.name;
}

}  // namespace

Result<void> keep_types(OpenedSource& opened, std::span<const Cast> casts) {
    std::vector<bool> known(opened.wanted.targets.size(), false);
    for (const Move& move : opened.wanted.moves) {
        const StoredTensor& source = opened.source.tensors[move.source];
        NewTensor& target = opened.wanted.targets[move.target];
        if (known[move.target] && target.type != source.type)
            return fail(Code::mismatch, fmt::format("{} would have elements of {} and of {}", in_quotes(target.name),
                                                    in_quotes(type_of(target.type, target.dtype)),
                                                    in_quotes(type_of(source.type, source.dtype))));
        known[move.target] = true;
        target.type = source.type;
        if (source.type.name.empty() || is_time(source.type)) continue;  // times are no floating numbers
        RESHARD_TRY(const bool cast, is_cast(target.name, casts));
        if (cast)
            return fail(Code::unsupported,
                        fmt::format("{} has elements of type {}, which are only copied: name the tensors to cast by "
                                    "patterns that leave it out",
                                    in_quotes(target.name), in_quotes(source.type.name)));
    }
    return {};
}

}  // namespace reshard::files
