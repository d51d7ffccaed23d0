// The style of every drawing. Colours run from dark blue over green to yellow, ever lighter, so readers who cannot tell
// red from green see them apart, and so does a printer.
#pragma once

#include <cstddef>
#include <string>

namespace reshard::cli::svg {

inline constexpr double letter = 6.7;  ///< the width of a letter

[[nodiscard]] std::string escaped(const std::string& text);
[[nodiscard]] std::string words(double x, double y, const std::string& text, const char* anchor = "start");

/// The colour of a place between 0 and 1, mixed with white: 0 leaves it, 1 is white.
[[nodiscard]] std::string colour(double place, double white);
/// One of eight colours, by a number.
[[nodiscard]] std::string colour_of(std::size_t number, double white);

struct Rectangle {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
};
/// `title` is shown by a browser when the mouse is over the rectangle.
[[nodiscard]] std::string drawn(const Rectangle& at, const std::string& fill, const std::string& title = "");
/// A frame without a filling.
[[nodiscard]] std::string frame(const Rectangle& at);

[[nodiscard]] std::string sheet(double width, double height, const std::string& body);

}  // namespace reshard::cli::svg
