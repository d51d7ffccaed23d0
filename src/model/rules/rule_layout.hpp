// Makes the layouts of rules for tensors of known shapes.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "reshard/layout.hpp"
#include "src/model/rules/rule_lines.hpp"

namespace reshard::notation {

/// A tensor that gets its layout from a rule.
struct Asked {
    DType dtype = DType::f32;
    std::vector<Index> shape;
    std::size_t along = 0;            ///< the dimension in which parts follow each other
    std::vector<Index> parts = {};    ///< each is cut by itself; empty: the dimension is cut as one
    const Bindings* names = nullptr;  ///< the values of the names in the rule's pattern
    bool may_pad = false;             ///< a target
};

/// The layouts of one end, each kept once.
class EndLayouts {
public:
    using Shared = std::shared_ptr<const Layout>;
    struct Placed {
        Shared layout;
        std::vector<Index> copies = {};  ///< for each part: how often each head stands in the tensor; empty: once
        std::vector<Index> heads = {};   ///< for each part: indices of a head, if there are copies
        std::vector<Index> padded = {};  ///< the shape with padding; empty: as asked
        std::vector<Index> parts = {};   ///< the extents of parts that are cut by themselves, with their padding
    };
    explicit EndLayouts(const RuleEnd& end) : end_(end) {}

    /// Returns the layout of the entries of rule number `rule`. Errors: as apply_rules.
    [[nodiscard]] Result<Placed> said(std::size_t rule, const Asked& asked);
    /// Returns the layout of a tensor whose indices are blocks of another tensor's. A cut of the other tensor must be
    /// between two blocks. Errors: as apply_rules.
    [[nodiscard]] Result<Shared> in_blocks(std::size_t rule, const Asked& asked, const Shared& of);

private:
    const RuleEnd& end_;
    std::map<std::tuple<std::size_t, DType, std::vector<Index>, std::vector<Index>, std::vector<std::string>>, Placed>
        said_;
    std::map<std::tuple<std::size_t, DType, std::vector<Index>, Shared>, Shared> in_blocks_;
};

}  // namespace reshard::notation
