// The moves that rules make from a list, as text.
#pragma once

#include <string>

#include <fmt/format.h>

#include "reshard/model/rules.hpp"
#include "reshard/text.hpp"

namespace reshard {

inline Result<CheckpointMapping> applied(std::string_view list, std::string_view rules) {
    const auto tensors = parse_tensors(list);
    if (!tensors) return tl::unexpected(tensors.error());
    return apply_rules(rules, *tensors);
}

/// Returns one line for each move: names, boxes and layouts. Or the error.
inline std::string said(std::string_view list, std::string_view rules) {
    const auto model = applied(list, rules);
    if (!model) return describe(model.error());
    const auto part = [](const ShardedTensor& tensor, const TensorPart& one) {
        std::string text = tensor.name;
        if (one.box) {
            text += "(";
            for (const Interval& side : *one.box)
                text += fmt::format("{}{}:{}", text.back() == '(' ? "" : ",", side.begin, side.end);
            text += ")";
        }
        return text + " " + format(*tensor.layout);
    };
    std::string text;
    for (std::size_t i = 0; i < model->moves.size(); ++i)
        text += part(model->sources[model->ends[i].source], model->moves[i].source) + " -> " +
                part(model->targets[model->ends[i].target], model->moves[i].target) + "\n";
    return text;
}

}  // namespace reshard
