// The picture as SVG: for every device the outline of the array and, filled, the tile that it holds. Equal colours are
// equal tiles.
#include <fmt/format.h>

#include <algorithm>

#include "report/picture.hpp"
#include "reshard/text.hpp"
#include "src/base/printable.hpp"

namespace reshard::cli {
namespace {

constexpr Index devices_max = 1024;
constexpr double outline = 64;  // of the longer edge of an array's outline
constexpr double space = 14;    // between devices
constexpr double margin = 48;   // round a panel, where the labels stand
constexpr double letter = 6.7;
constexpr std::size_t boxes_drawn_max = 1024;  // of one tile; blocks smaller than that are not to be seen

std::string words(double x, double y, const std::string& text, const char* anchor = "start") {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, in_xml(text));
}

// The last two dimensions as height and width; what is missing counts 1.
struct Face {
    double height = 1;
    double width = 1;
};

Face face_of(const Layout& layout) {
    const std::size_t rank = layout.dims.size();
    Face face{rank > 1 ? static_cast<double>(layout.dims[rank - 2].extent) : 1,
              rank > 0 ? static_cast<double>(layout.dims[rank - 1].extent) : 1};
    const double scale = outline / std::max({face.height, face.width, 1.0});
    // Long thin arrays are drawn thicker than they are, or their tiles could not be seen.
    return {std::max(outline / 4, face.height * scale), std::max(outline / 4, face.width * scale)};
}

struct Span {
    double begin = 0;
    double size = 1;
};

Span span_of(const Layout& layout, const Box& box, std::size_t from_last, double length) {
    if (layout.dims.size() < from_last) return {0, length};
    const std::size_t d = layout.dims.size() - from_last;
    const double extent = std::max<double>(1, static_cast<double>(layout.dims[d].extent));
    return {static_cast<double>(box[d].begin) / extent * length, static_cast<double>(box[d].size()) / extent * length};
}

// A hue from where the tile begins, so that equal tiles look equal and neighbours differ.
int hue_of(const Layout& layout, const Box& box) {
    double place = 0;
    double scale = 1;
    for (std::size_t d = 0; d < box.size(); ++d) {
        const double extent = std::max<double>(1, static_cast<double>(layout.dims[d].extent));
        scale /= extent;
        place += static_cast<double>(box[d].begin) * scale;
    }
    return static_cast<int>(place * 330);
}

std::string device_drawing(const Layout& layout, Index device, double x, double y, const Face& face) {
    const Tile held = tile(layout, device);
    const bool sums = summand_count(layout) > 1;
    const std::string summand_text = sums ? fmt::format(" summand {}", summand(layout, device)) : "";
    std::string out = fmt::format("<g><title>device {}: {}{}</title>\n", device, ranges(layout, held), summand_text);
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"array\"/>\n", x, y,
                       face.width, face.height);
    const std::vector<Box> boxes = boxes_of(held);
    for (std::size_t i = 0; i < boxes.size() && i < boxes_drawn_max; ++i) {
        const Span down = span_of(layout, boxes[i], 2, face.height);
        const Span across = span_of(layout, boxes[i], 1, face.width);
        out += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"hsl({},65%,{}%)\"/>\n",
            x + across.begin, y + down.begin, across.size, down.size, hue_of(layout, boxes.front()), sums ? 78 : 60);
    }
    if (sums) out += words(x + 2, y + 11, fmt::format("s{}", summand(layout, device)));
    return out + "</g>\n";
}

struct Drawn {
    std::string text;
    double width = 0;
    double height = 0;
};

Drawn panel(const Stage& stage, double left) {
    const Layout& layout = *stage.layout;
    const Grid grid(layout.mesh);
    const Face face = face_of(layout);
    const std::string title = format(layout);
    Drawn drawn;
    drawn.text += words(left + margin, 18, stage.title) + words(left + margin, 34, title);
    const double label = static_cast<double>(grid.row_label(0).size()) * letter;
    const double x0 = left + margin + label;
    const double y0 = margin + 20;
    for (Index column = 0; column < grid.columns(); ++column) {
        const double x = x0 + static_cast<double>(column) * (face.width + space);
        drawn.text += words(x + face.width / 2, y0 - 6, grid.column_label(column), "middle");
    }
    for (Index row = 0; row < grid.rows(); ++row) {
        const double y = y0 + static_cast<double>(row) * (face.height + space);
        drawn.text += words(x0 - 6, y + face.height / 2 + 4, grid.row_label(row), "end");
        for (Index column = 0; column < grid.columns(); ++column) {
            const double x = x0 + static_cast<double>(column) * (face.width + space);
            drawn.text += device_drawing(layout, grid.device(row, column), x, y, face);
        }
    }
    const double wide = label + static_cast<double>(grid.columns()) * (face.width + space);
    drawn.width = margin + std::max(wide, static_cast<double>(title.size()) * letter);
    drawn.height = y0 + static_cast<double>(grid.rows()) * (face.height + space);
    return drawn;
}

}  // namespace

Result<std::string> svg_picture(const Plan& plan) {
    const Index devices = world_size(plan);
    if (devices > devices_max) {
        return fail(Code::unsupported, fmt::format("a drawing shows at most {} devices, the mesh has {}; without --svg "
                                                   "the first and the last are shown",
                                                   devices_max, devices));
    }
    std::string body;
    double width = 0;
    double height = 0;
    for (const Stage& stage : stages(plan)) {
        const Drawn drawn = panel(stage, width);
        body += drawn.text;
        width += drawn.width;
        height = std::max(height, drawn.height);
    }
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" font-family=\"monospace\" font-size=\"11\">\n<style>.array{{fill:#f4f4f4;stroke:#999}}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{2}</svg>\n",
        width + margin, height + space, body);
}

}  // namespace reshard::cli
