#include "report/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace reshard::cli::svg {
namespace {

using Colour = std::array<double, 3>;  // red, green, blue, up to 255

std::string text_of(const Colour& colour, double white) {
    const auto mixed = [&](double part) { return static_cast<int>(part + (255 - part) * white + 0.5); };
    return fmt::format("#{:02x}{:02x}{:02x}", mixed(colour[0]), mixed(colour[1]), mixed(colour[2]));
}

}  // namespace

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
    return out;
}

std::string words(double x, double y, const std::string& text, const char* anchor) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

std::string colour(double place, double white) {
    // Viridis, by Stefan van der Walt and Nathaniel Smith, at five places.
    static constexpr std::array<Colour, 5> stops{
        {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}};
    const double at = std::clamp(place, 0.0, 1.0) * (stops.size() - 1);
    const std::size_t stop = std::min(static_cast<std::size_t>(at), stops.size() - 2);
    const double rest = at - static_cast<double>(stop);
    Colour mixed{};
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = stops[stop][i] * (1 - rest) + stops[stop + 1][i] * rest;
    return text_of(mixed, white);
}

std::string colour_of(std::size_t number, double white) {
    // The colours of Okabe and Ito, "Color universal design"; grey instead of black.
    static constexpr std::array<Colour, 8> named{{{230, 159, 0},
                                                  {86, 180, 233},
                                                  {0, 158, 115},
                                                  {240, 228, 66},
                                                  {0, 114, 178},
                                                  {213, 94, 0},
                                                  {204, 121, 167},
                                                  {120, 120, 120}}};
    return text_of(named[number % named.size()], white);
}

std::string drawn(const Rectangle& at, const std::string& fill, const std::string& title) {
    const std::string begin = fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}")",
                                          at.x, at.y, at.width, at.height, fill);
    return title.empty() ? begin + "/>\n" : fmt::format("{}><title>{}</title></rect>\n", begin, escaped(title));
}

std::string frame(const Rectangle& at) {
    return fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"none\" stroke=\"#555\" "
        "stroke-dasharray=\"4 3\"/>\n",
        at.x, at.y, at.width, at.height);
}

std::string sheet(double width, double height, const std::string& body) {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" font-family=\"monospace\" font-size=\"11\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{2}</svg>\n",
        width, height, body);
}

}  // namespace reshard::cli::svg
