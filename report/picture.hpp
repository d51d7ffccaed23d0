// A layout laid out over its mesh: which rows and columns of devices, and what stands beside them.
#pragma once

#include <string>
#include <vector>

#include "report/page.hpp"
#include "reshard/plan.hpp"
#include "reshard/planner/cost.hpp"

namespace reshard::cli {

/// Devices as rows and columns: the last axis across, all others down.
class Grid {
public:
    explicit Grid(const Mesh& mesh);
    [[nodiscard]] Index rows() const { return rows_; }
    [[nodiscard]] Index columns() const { return columns_; }
    [[nodiscard]] Index device(Index row, Index column) const { return device_at(mesh_, row * columns_ + column); }
    [[nodiscard]] std::string row_label(Index row) const;        ///< x0 or x0,y1; empty for meshes of one axis
    [[nodiscard]] std::string column_label(Index column) const;  ///< z0; empty for a mesh without axes

private:
    const Mesh& mesh_;
    Index rows_ = 1;
    Index columns_ = 1;
};

/// A tile as ranges: 0:3,: where a whole dimension is just a colon, 0:2+4:6 where it has several; - when empty.
[[nodiscard]] std::string ranges(const Layout& layout, const Tile& tile);

/// The layouts of a plan from source to target, each with a title: source, 1 all_gather, ...
struct Stage {
    std::string title;
    const Layout* layout;
};
[[nodiscard]] std::vector<Stage> stages(const Plan& plan);

[[nodiscard]] std::string text_picture(const Plan& plan, const Page& page);

/// Each step with its time on each level of the machine, and a frame around the devices of each node. Errors:
/// unsupported (too many devices to see any of them).
[[nodiscard]] Result<std::string> svg_picture(const Plan& plan, const Machine& machine);

}  // namespace reshard::cli
