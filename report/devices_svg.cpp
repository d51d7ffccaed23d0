#include "report/devices_svg.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/picture.hpp"

namespace reshard::cli::svg {
namespace {

constexpr Index devices_max = 1024;
constexpr double side = 64;  // of the longer edge of an array's outline
constexpr double line = 14;  // of text

Face face_of(const Layout& layout) {
    const std::size_t rank = layout.dims.size();
    Face face{rank > 1 ? static_cast<double>(layout.dims[rank - 2].extent) : 1,
              rank > 0 ? static_cast<double>(layout.dims[rank - 1].extent) : 1};
    const double scale = side / std::max({face.height, face.width, 1.0});
    // Long thin arrays are drawn thicker than they are, or their tiles could not be seen.
    return {std::max(side / 4, face.height * scale), std::max(side / 4, face.width * scale)};
}

struct Span {
    double begin = 0;
    double end = 1;
};

Span span_of(const Layout& layout, const Box& box, std::size_t from_last, double length) {
    if (layout.dims.size() < from_last) return {0, length};
    const std::size_t d = layout.dims.size() - from_last;
    const double extent = std::max<double>(1, static_cast<double>(layout.dims[d].extent));
    return {static_cast<double>(box[d].begin) / extent * length, static_cast<double>(box[d].end) / extent * length};
}

// Frames around the devices of each block of the network, if the rows and columns show a block as a rectangle.
std::string frames(const Mesh& mesh, const Grid& grid, const Network& network, double x0, double y0, const Face& face) {
    std::string out;
    for (std::size_t level = 0; level < network.size(); ++level) {
        const Index wide = std::min(network[level], grid.columns());
        const Index high = std::max<Index>(1, network[level] / grid.columns());
        if (wide * high != network[level] || grid.columns() % wide != 0 || grid.rows() % high != 0) continue;
        const double around = 3 + 2 * static_cast<double>(level);
        for (Index row = 0; row < grid.rows(); row += high) {
            for (Index column = 0; column < grid.columns(); column += wide) {
                const Index first = grid.device(row, column);
                if (first % network[level] != 0 || device_at(mesh, (row + high - 1) * grid.columns() + column + wide -
                                                                       1) != first + network[level] - 1)
                    continue;
                out += frame({x0 + static_cast<double>(column) * (face.width + space) - around,
                              y0 + static_cast<double>(row) * (face.height + space) - around,
                              static_cast<double>(wide) * (face.width + space) - space + 2 * around,
                              static_cast<double>(high) * (face.height + space) - space + 2 * around});
            }
        }
    }
    return out;
}

}  // namespace

Rectangle place_of(const Layout& layout, const Box& box, double x, double y, const Face& face) {
    const Span down = span_of(layout, box, 2, face.height);
    const Span across = span_of(layout, box, 1, face.width);
    return {x + across.begin, y + down.begin, across.end - across.begin, down.end - down.begin};
}

std::string outline(double x, double y, const Face& face) { return drawn({x, y, face.width, face.height}, "#ececec"); }

double colour_place(const Layout& layout, const Box& box) {
    constexpr double next = 0.4;  // the weight of a dimension beside the one before it; even cuts then differ in colour
    double place = 0;
    double weight = 1;
    double weights = 0;
    for (std::size_t d = 0; d < box.size(); ++d) {
        const double extent = std::max<double>(1, static_cast<double>(layout.dims[d].extent));
        place += static_cast<double>(box[d].begin) / extent * weight;
        weights += weight;
        weight *= next;
    }
    return weights == 0 ? 0 : place / weights;
}

Drawn panel(const Layout& layout, const std::vector<std::string>& lines, std::size_t lines_max, double left,
            const Network& network, const DeviceDrawing& one) {
    const Grid grid(layout.mesh);
    const Face face = face_of(layout);
    Drawn made;
    double widest = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        made.text += words(left + margin, 18 + line * static_cast<double>(i), lines[i]);
        widest = std::max(widest, static_cast<double>(lines[i].size()) * letter);
    }
    const double label = static_cast<double>(grid.row_label(0).size()) * letter;
    const double x0 = left + margin + label;
    const double y0 = 18 + line * static_cast<double>(lines_max) + 22;
    for (Index column = 0; column < grid.columns(); ++column) {
        const double x = x0 + static_cast<double>(column) * (face.width + space);
        made.text += words(x + face.width / 2, y0 - 9, grid.column_label(column), "middle");
    }
    for (Index row = 0; row < grid.rows(); ++row) {
        const double y = y0 + static_cast<double>(row) * (face.height + space);
        made.text += words(x0 - 9, y + face.height / 2 + 4, grid.row_label(row), "end");
        for (Index column = 0; column < grid.columns(); ++column)
            made.text +=
                one(grid.device(row, column), x0 + static_cast<double>(column) * (face.width + space), y, face);
    }
    made.text += frames(layout.mesh, grid, network, x0, y0, face);
    const double wide = label + static_cast<double>(grid.columns()) * (face.width + space);
    made.width = margin + std::max(wide, widest);
    made.height = y0 + static_cast<double>(grid.rows()) * (face.height + space);
    return made;
}

Result<void> few_enough(Index devices) {
    if (devices <= devices_max) return {};
    return fail(Code::unsupported, fmt::format("a drawing shows at most {} devices, the mesh has {}; without --svg "
                                               "the first and the last are shown",
                                               devices_max, devices));
}

}  // namespace reshard::cli::svg
