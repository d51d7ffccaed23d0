#include "src/model/rules/tensor_blocks.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/model/rules/name_pattern.hpp"
#include "src/model/rules/rule_lines.hpp"

namespace reshard::notation {

namespace {

constexpr Index numbers_max = Index{1} << 20;  // that one {name:count} runs through
constexpr Index tensors_max = Index{1} << 20;  // of a list with patterns

// The first part of a name between dots that is a number. If no part is, begin == end.
struct NumberPart {
    std::size_t begin = 0;
    std::size_t end = 0;
    Index number = -1;
};

NumberPart first_number(std::string_view name) {
    for (std::size_t begin = 0; begin < name.size();) {
        const std::size_t end = std::min(name.find('.', begin), name.size());
        if (name.substr(begin, end - begin) == std::string_view(&number_place, 1)) return {begin, end, -1};
        if (const Index number = number_below(name.substr(begin, end - begin), index_max); number >= 0)
            return {begin, end, number};
        begin = end + 1;
    }
    return {};
}

// A line of a list: its name, and the text of its element type and shape.
struct ListLine {
    RuleLine line;
    std::size_t begin = 0;
    std::string_view name;
    std::string_view array;
    NumberPart part = {};

    [[nodiscard]] Result<ListedTensor> tensor(std::string called) const {
        auto read = parse_array(array);
        if (!read)
            return line.error(read.error().code, read.error().message,
                              read.error().offset + static_cast<std::size_t>(array.data() - line.text.data()));
        return ListedTensor{std::move(called), read->dtype, std::move(read->shape)};
    }
};

ListLine split_line(const RuleLine& line) {
    Scanner scanner(line.text);
    const std::size_t begin = scanner.place();
    const std::size_t end = std::min(line.text.find_first_of(" \t", begin), line.text.size());
    scanner.move_to(end);
    const std::string_view name = line.text.substr(begin, end - begin);
    return {line, begin, name, line.text.substr(scanner.place()), first_number(name)};
}

// Adds tensors that are listed once.
void append_alone(std::vector<TensorBlock>& blocks, ListedTensor tensor) {
    if (blocks.empty() || !blocks.back().numbers.empty()) blocks.emplace_back();
    blocks.back().tensors.push_back(std::move(tensor));
}

// Turns consecutive layers with equal lines into one block.
class Folding {
public:
    explicit Folding(std::vector<TensorBlock>& blocks) : blocks_(blocks) {}

    Result<void> add(const ListLine& line) {
        if (!layer_.empty() && !continues(line)) RESHARD_CHECK(close_layer());
        layer_.push_back(line);
        return {};
    }

    Result<void> close() {
        RESHARD_CHECK(close_layer());
        return close_block();
    }

private:
    static std::string_view before(const ListLine& line) { return line.name.substr(0, line.part.begin); }
    // The rest of the line, with the element type.
    static std::string_view after(const ListLine& line) {
        const char* const from = line.name.data() + line.part.end;
        return {from, static_cast<std::size_t>(line.array.data() + line.array.size() - from)};
    }

    [[nodiscard]] bool continues(const ListLine& line) const {
        return line.part.number == layer_.front().part.number && before(line) == before(layer_.front());
    }

    [[nodiscard]] bool layer_is_equal() const {
        return layer_.front().part.number >= 0 && !numbers_.contains(layer_.front().part.number) &&
               std::ranges::equal(layer_, first_, [](const ListLine& a, const ListLine& b) {
                   return before(a) == before(b) && after(a) == after(b);
               });
    }

    Result<void> close_layer() {
        if (layer_.empty()) return {};
        const Index number = layer_.front().part.number;
        if (!layer_is_equal()) {
            RESHARD_CHECK(close_block());
            first_.swap(layer_);
        }
        layer_.clear();
        order_.push_back(number);
        numbers_.insert(number);
        return {};
    }

    Result<void> close_block() {
        TensorBlock block;
        for (const ListLine& line : first_) {
            std::string name(line.name);
            if (order_.size() > 1) name.replace(line.part.begin, line.part.end - line.part.begin, 1, number_place);
            RESHARD_TRY(auto& tensor, line.tensor(std::move(name)));
            if (order_.size() > 1)
                block.tensors.push_back(std::move(tensor));
            else
                append_alone(blocks_, std::move(tensor));
        }
        block.numbers = std::move(order_);
        if (block.numbers.size() > 1) blocks_.push_back(std::move(block));
        first_.clear();
        numbers_.clear();
        order_.clear();
        return {};
    }

    std::vector<TensorBlock>& blocks_;
    std::vector<ListLine> first_, layer_;  // the first layer of the block, and the last one of the list so far
    std::vector<Index> order_;             // the numbers of the block's layers
    std::unordered_set<Index> numbers_;    // the same
};

// A name with numbers: text, or a number from `from` to `to`.
struct Piece {
    std::string_view text;
    Index from = 0;
    Index to = 0;  // 0: text
    friend bool operator==(const Piece&, const Piece&) = default;
};

struct PatternLine {
    ListLine line;
    std::vector<Piece> pieces;
};

// number := "{" name ":" [from ":"] to "}"
Result<PatternLine> read_pattern(const ListLine& line) {
    PatternLine pattern{line, {}};
    Scanner scanner(line.line.text.substr(0, line.begin + line.name.size()));
    for (std::size_t at = line.begin; at < scanner.text().size();) {
        const std::size_t open = std::min(scanner.text().find('{', at), scanner.text().size());
        if (open > at) pattern.pieces.push_back({scanner.text().substr(at, open - at)});
        if (open == scanner.text().size()) break;
        scanner.move_to(open + 1);
        Piece piece{scanner.word()};
        const auto wrong = [&] {
            return line.line.error(Code::syntax, "expected a number as {name:count} or {name:from:to}", open);
        };
        if (piece.text.empty() || !scanner.take(':')) return wrong();
        RESHARD_ASSIGN(piece.to, line.line.numbered(scanner.integer("how many there are")));
        if (scanner.take(':')) {
            piece.from = piece.to;
            RESHARD_ASSIGN(piece.to, line.line.numbered(scanner.integer("where the numbers end")));
        }
        if (!scanner.take('}')) return wrong();
        if (piece.to <= piece.from) return line.line.error(Code::syntax, "at least one number", open);
        if (piece.to - piece.from > numbers_max)
            return line.line.error(Code::unsupported, fmt::format("more than {} numbers", numbers_max), open);
        pattern.pieces.push_back(piece);
        at = scanner.offset();
    }
    return pattern;
}

// Expands consecutive lines with numbers. The first number of a line runs slowest, for all lines that begin with it.
class Expansion {
public:
    explicit Expansion(std::vector<TensorBlock>& blocks) : blocks_(blocks) {}

    Result<void> add(const ListLine& line) {
        RESHARD_TRY(auto& pattern, read_pattern(line));
        lines_.push_back(std::move(pattern));
        return {};
    }

    Result<void> close() {
        for (std::size_t i = 0; i < lines_.size();) {
            values_.clear();
            const Piece number = *free_number(lines_[i]);
            const std::size_t end = end_of_group(lines_, i, number);
            const std::span<const PatternLine> group = std::span(lines_).subspan(i, end - i);
            TensorBlock block;
            for (Index n = number.from; n < number.to; ++n) block.numbers.push_back(n);
            values_ = {{number.text, std::string(1, number_place)}};
            RESHARD_CHECK(expand(group, block.tensors));
            if (std::ranges::all_of(block.tensors, first_number_is_place)) {
                blocks_.push_back(std::move(block));
            } else {
                std::vector<ListedTensor> tensors;
                for (const Index n : block.numbers) {
                    values_ = {{number.text, std::to_string(n)}};
                    RESHARD_CHECK(expand(group, tensors));
                }
                for (ListedTensor& tensor : tensors) append_alone(blocks_, std::move(tensor));
            }
            i = end;
        }
        lines_.clear();
        return {};
    }

private:
    using Value = std::pair<std::string_view, std::string>;  // of a name

    static bool first_number_is_place(const ListedTensor& tensor) {
        const NumberPart part = first_number(tensor.name);
        return part.end > part.begin && part.number < 0 && std::ranges::count(tensor.name, number_place) == 1;
    }

    [[nodiscard]] const std::string* value_of(std::string_view name) const {
        const auto found = std::ranges::find(values_, name, &Value::first);
        return found == values_.end() ? nullptr : &found->second;
    }

    // The first number of a line that has no value yet.
    [[nodiscard]] const Piece* free_number(const PatternLine& line) const {
        for (const Piece& piece : line.pieces)
            if (piece.to > 0 && value_of(piece.text) == nullptr) return &piece;
        return nullptr;
    }

    [[nodiscard]] std::size_t end_of_group(std::span<const PatternLine> lines, std::size_t begin,
                                           const Piece& number) const {
        std::size_t end = begin + 1;
        while (end < lines.size() && free_number(lines[end]) != nullptr && *free_number(lines[end]) == number) ++end;
        return end;
    }

    Result<void> expand(std::span<const PatternLine> lines, std::vector<ListedTensor>& tensors) {
        for (std::size_t i = 0; i < lines.size();) {
            const Piece* const number = free_number(lines[i]);
            if (number == nullptr) {
                if (std::ssize(tensors) >= tensors_max)
                    return lines[i].line.line.error(Code::unsupported,
                                                    fmt::format("more than {} tensors of patterns", tensors_max), 0);
                RESHARD_TRY(auto& tensor, lines[i].line.tensor(named(lines[i])));
                tensors.push_back(std::move(tensor));
                ++i;
                continue;
            }
            const std::size_t end = end_of_group(lines, i, *number);
            values_.emplace_back(number->text, "");
            for (Index n = number->from; n < number->to; ++n) {
                values_.back().second = std::to_string(n);
                RESHARD_CHECK(expand(lines.subspan(i, end - i), tensors));
            }
            values_.pop_back();
            i = end;
        }
        return {};
    }

    [[nodiscard]] std::string named(const PatternLine& line) const {
        std::string name;
        for (const Piece& piece : line.pieces) name += piece.to > 0 ? *value_of(piece.text) : std::string(piece.text);
        return name;
    }

    std::vector<TensorBlock>& blocks_;
    std::vector<PatternLine> lines_;
    std::vector<Value> values_;
};

}  // namespace

std::string with_number(std::string_view name, char stand_in, Index number) {
    std::string made;
    const std::string digits = std::to_string(number);
    for (const char byte : name)
        if (byte == stand_in)
            made += digits;
        else
            made += byte;
    return made;
}

Result<std::vector<TensorBlock>> read_blocks(std::string_view text) {
    std::vector<TensorBlock> blocks;
    Folding folding(blocks);
    Expansion expansion(blocks);
    for (RuleLine line{{}, 0, "the list"}; next_line(text, line);) {
        const ListLine one = split_line(line);
        const bool pattern = one.name.find('{') != std::string_view::npos;
        if (pattern) {
            RESHARD_CHECK(folding.close());
            RESHARD_CHECK(expansion.add(one));
        } else {
            RESHARD_CHECK(expansion.close());
            RESHARD_CHECK(folding.add(one));
        }
    }
    RESHARD_CHECK(folding.close());
    RESHARD_CHECK(expansion.close());
    Index total = 0;
    for (const TensorBlock& block : blocks)
        total = saturating_add(
            total, saturating_multiply(std::ssize(block.tensors), std::max<Index>(std::ssize(block.numbers), 1)));
    if (total > tensors_max) return fail(Code::unsupported, fmt::format("more than {} tensors", tensors_max));
    return blocks;
}

bool names_differ(std::span<const TensorBlock> blocks) {
    // Equal names have their first number at the same place, so the rest of them is equal too.
    struct Numbers {
        std::unordered_set<Index> alone;
        std::vector<std::vector<Index>> blocks;  // each ascending
    };
    std::unordered_map<std::string, Numbers> numbers_of;
    for (const TensorBlock& block : blocks) {
        std::vector<Index> numbers = block.numbers;
        std::ranges::sort(numbers);
        for (const ListedTensor& tensor : block.tensors) {
            std::string name = tensor.name;
            const NumberPart part = first_number(name);
            if (part.number >= 0) name.replace(part.begin, part.end - part.begin, 1, number_place);
            Numbers& known = numbers_of[std::move(name)];
            const auto has = [&](Index number) {
                return known.alone.contains(number) || std::ranges::any_of(known.blocks, [&](const auto& other) {
                           return std::ranges::binary_search(other, number);
                       });
            };
            if (block.numbers.empty() ? has(part.number) : std::ranges::any_of(numbers, has)) return false;
            if (block.numbers.empty())
                known.alone.insert(part.number);
            else
                known.blocks.push_back(numbers);
        }
    }
    return true;
}

std::vector<ListedTensor> all_tensors(std::span<const TensorBlock> blocks) {
    std::vector<ListedTensor> all;
    for (const TensorBlock& block : blocks) {
        if (block.numbers.empty()) all.insert(all.end(), block.tensors.begin(), block.tensors.end());
        for (const Index number : block.numbers)
            for (const ListedTensor& tensor : block.tensors)
                all.push_back({with_number(tensor.name, number_place, number), tensor.dtype, tensor.shape});
    }
    return all;
}

}  // namespace reshard::notation
