// The layouts that rules say, once the shapes of the tensors are known.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "reshard/layout.hpp"
#include "src/model/rule_lines.hpp"

namespace reshard::notation {

/// A tensor of which a rule is to say the layout.
struct Asked {
    DType dtype = DType::f32;
    std::vector<Index> shape;
    std::size_t along = 0;            ///< the dimension in which parts follow each other
    std::vector<Index> parts = {};    ///< that are cut by themselves; none: the dimension is cut as one
    const Bindings* names = nullptr;  ///< what the rule's pattern stands for
};

/// The layouts of one end, each kept once.
class EndLayouts {
public:
    using Shared = std::shared_ptr<const Layout>;
    explicit EndLayouts(const RuleEnd& end) : end_(end) {}

    /// As the entries of rule number `rule` say. Errors: as apply_rules.
    [[nodiscard]] Result<Shared> said(std::size_t rule, const Asked& asked);
    /// In blocks of another tensor's indices: a cut of that one is a cut between two blocks. Errors: as apply_rules.
    [[nodiscard]] Result<Shared> in_blocks(std::size_t rule, const Asked& asked, const Shared& of);

private:
    const RuleEnd& end_;
    std::map<std::tuple<std::size_t, DType, std::vector<Index>, std::vector<Index>, std::vector<std::string>>, Shared>
        said_;
    std::map<std::tuple<std::size_t, DType, std::vector<Index>, Shared>, Shared> in_blocks_;
};

}  // namespace reshard::notation
