// Makes the layouts of rules for tensors of known shapes.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "reshard/layout.hpp"
#include "src/model/rules/rule_lines.hpp"
#include "src/model/rules/shared_blocks.hpp"

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

/// For each dimension of a tensor: the extents of the parts that follow each other in it. Dimensions at the end, or
/// without an entry, have one part.
using PartsOfDims = std::vector<std::vector<Index>>;

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
        PartsOfDims dim_parts = {};      ///< the parts of each dimension
    };
    /// A tensor whose blocks another tensor has.
    struct BlocksTensor {
        Shared layout;
        std::vector<Index> shape;
        PartsOfDims dim_parts;      ///< ignored if no shards may share a block
        bool whole_blocks = false;  ///< no shards may share a block
    };
    /// A tensor of blocks.
    struct InBlocks {
        Shared layout;
        std::vector<Index> shape;     ///< with a block once for each shard that has it
        std::vector<Stretches> held;  ///< as ShardedTensor::held
    };
    explicit EndLayouts(const RuleEnd& end) : end_(end) {}

    /// Returns the layout of the entries of rule number `rule`. Errors: as apply_rules.
    [[nodiscard]] Result<Placed> said(std::size_t rule, const Asked& asked);
    /// Returns the layout of a tensor whose indices are blocks of another tensor's. Errors: as apply_rules.
    [[nodiscard]] Result<InBlocks> in_blocks(std::size_t rule, const Asked& asked, const BlocksTensor& of);

private:
    const RuleEnd& end_;
    std::map<std::tuple<std::size_t, DType, std::vector<Index>, std::vector<Index>, std::vector<std::string>>, Placed>
        said_;
    std::map<std::tuple<std::size_t, DType, std::vector<Index>, Shared, PartsOfDims, bool>, InBlocks> in_blocks_;
};

}  // namespace reshard::notation
