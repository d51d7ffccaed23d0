// Reading text left to right, with errors that know their place. Shared by all notations.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "reshard/planner/atoms.hpp"

namespace reshard::notation {

/// Text between words to skip: blanks; line ends too; comments (/*..*/) too.
enum class Spaces { blanks, lines, comments };

class Scanner {
public:
    explicit Scanner(std::string_view text, Spaces spaces = Spaces::blanks) : text_(text), spaces_(spaces) {}

    [[nodiscard]] std::size_t offset() const { return offset_; }
    [[nodiscard]] std::string_view text() const { return text_; }
    /// Goes on reading at another place. pre: within the text.
    void move_to(std::size_t offset) { offset_ = offset; }
    /// The place of the next character after spaces.
    [[nodiscard]] std::size_t place() {
        skip_space();
        return offset_;
    }
    [[nodiscard]] bool at_end() { return place() == text_.size(); }

    /// True when the next byte after spaces is `byte`; does not consume it.
    [[nodiscard]] bool sees(char byte) { return !at_end() && text_[offset_] == byte; }
    /// Consumes `byte` when it is next.
    bool take(char byte);
    /// Consumes `byte` or fails with "expected ...".
    [[nodiscard]] Result<void> expect(char byte);
    /// A name: letter or underscore, then letters, digits, underscores; otherwise empty.
    [[nodiscard]] std::string_view word();
    /// Consumes `word` when it is the next word, whole.
    bool take_word(std::string_view word);
    /// Consumes from an opening byte to the one that closes it, whatever is between; false when none does.
    bool skip_balanced(char open, char close);
    /// The text between two quotes, ' or ", and consumes them; nullopt without an opening quote.
    std::optional<std::string_view> quoted();
    /// A decimal integer >= 0. Errors: syntax, overflow past 64 bits.
    [[nodiscard]] Result<Index> integer(std::string_view what);
    /// Fails when anything but spaces is left.
    [[nodiscard]] Result<void> expect_end();

    /// An error at the current place (or at `offset`), with the text.
    [[nodiscard]] tl::unexpected<Error> error(Code code, std::string message) const {
        return error(code, message, offset_);
    }
    [[nodiscard]] tl::unexpected<Error> error(Code code, std::string message, std::size_t offset) const;
    /// The same result, an error placed at `offset` of this text.
    template <class T>
    [[nodiscard]] Result<T> at(Result<T> result, std::size_t offset) const {
        if (!result) result = error(result.error().code, result.error().message, offset);
        return result;
    }

    void skip_space();

private:
    std::string_view text_;
    Spaces spaces_ = Spaces::blanks;
    std::size_t offset_ = 0;
};

/// n {"," n}, each at least `least`.
[[nodiscard]] Result<std::vector<Index>> scan_numbers(Scanner& scanner, std::string_view what, Index least);

/// A unit by its name; an empty name is a number without a unit.
struct Unit {
    std::string_view name;
    Index factor = 1;
};

/// quantity := integer ["." up to nine digits] [unit], exactly; what is left below 1 is rounded up.
/// Errors: syntax (naming the units), overflow.
[[nodiscard]] Result<Index> scan_quantity(Scanner& scanner, std::string_view what, std::span<const Unit> units);

/// axis := name [":(" before ")" size] | "?" size ":" stride, resolved in the mesh.
[[nodiscard]] Result<Atom> scan_axis(Scanner& scanner, const Mesh& mesh);

/// axes := axis | "(" [axis {"," axis}] ")", appended to `atoms` in order.
[[nodiscard]] Result<void> scan_axes(Scanner& scanner, const Mesh& mesh, AtomList& atoms);

/// The axes of one dimension, appended to `used` too, so that a second use is reported where it stands. Errors: layout.
[[nodiscard]] Result<AtomList> scan_dim_axes(Scanner& scanner, const Mesh& mesh, AtomList& used);

}  // namespace reshard::notation
