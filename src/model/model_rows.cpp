#include "reshard/model/model_rows.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/model/rules/number_reader.hpp"
#include "src/model/rules/tensor_blocks.hpp"

namespace reshard {

using namespace notation;

namespace {

// Bytes that stand for numbers in names. No name and no rule has one of them, so only * and {name} match them.
constexpr std::string_view stand_ins =
    "\x01\x02\x03\x04\x05\x06\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b";

}  // namespace

class ModelRows::Making {
public:
    Making(std::string_view rules, std::string_view tensors) : rules_(rules), tensors_(tensors) {}

    // The whole list, tensor by tensor.
    static Result<ModelRows> by_tensor(std::string_view rules, std::span<const ListedTensor> tensors) {
        RESHARD_TRY(const auto& mapping, apply_rules(rules, tensors));
        RESHARD_TRY(auto& made, scheduled(mapping));
        made.stretches_.push_back({0, mapping.moves.size(), 0, 0, {}});
        return made;
    }

    // One layer of each kind. Nullopt if that is not possible, or if something is wrong.
    std::optional<ModelRows> by_layer() {
        if (tensors_.find_first_of(stand_ins) != std::string_view::npos) return std::nullopt;
        const auto text = read_rules(rules_);
        auto blocks = read_blocks(tensors_);
        if (!text || !blocks || !names_differ(*blocks)) return std::nullopt;
        list(NumberReader(*text), *blocks);
        const auto mapping = apply_rules(rules_, listed_);
        if (!mapping || !stretch(*mapping)) return std::nullopt;
        auto made = scheduled(*mapping);
        if (!made) return std::nullopt;
        made->stretches_ = std::move(stretches_);
        return *std::move(made);
    }

private:
    // Lists the tensors of each block once, or all of them if a rule reads the number.
    void list(const NumberReader& reader, std::vector<TensorBlock>& blocks) {
        for (TensorBlock& block : blocks) {
            const char stand_in = block.numbers.empty() || reads(reader, block) ? '\0' : stand_in_for(block.numbers);
            if (stand_in == '\0') {
                for (ListedTensor& tensor : all_tensors(std::span(&block, 1))) append(std::move(tensor), 0);
                continue;
            }
            stand_in_of_.push_back(stand_in);
            for (ListedTensor& tensor : block.tensors) {
                std::ranges::replace(tensor.name, number_place, stand_in);
                append(std::move(tensor), stand_in_of_.size() - 1);
            }
        }
    }

    static bool reads(const NumberReader& reader, const TensorBlock& block) {
        return std::ranges::any_of(block.tensors, [&](const ListedTensor& tensor) {
            return reader.reads(tensor.name, tensor.name.find(number_place));
        });
    }

    // Blocks of equal numbers have one byte, so their tensors can be parts of one. \0 if there are too many.
    char stand_in_for(const std::vector<Index>& numbers) {
        const auto found = std::ranges::find(numbers_, numbers);
        const auto place = static_cast<std::size_t>(found - numbers_.begin());
        if (place == stand_ins.size()) return '\0';
        if (found == numbers_.end()) numbers_.push_back(numbers);
        return stand_ins[place];
    }

    void append(ListedTensor tensor, std::size_t block) {
        listed_.push_back(std::move(tensor));
        block_of_.push_back(block);
    }

    // Finds the moves that are repeated together. False if a target is made of tensors of several blocks, or if two
    // targets have one name.
    bool stretch(const CheckpointMapping& mapping) {
        std::unordered_set<std::string> names;
        std::size_t arrays = 0;
        std::size_t current = 0;
        std::vector<bool> named(mapping.targets.size(), false);
        for (std::size_t move = 0; move < mapping.ends.size(); ++move) {
            const auto [source, target] = mapping.ends[move];
            const std::size_t block = block_of_[source];
            const bool fresh = !named[target];
            if (!fresh && block != current) return false;
            if (stretches_.empty() || block != current) begin(move, arrays, stand_in_of_[block]);
            current = block;
            ++stretches_.back().moves;
            arrays += stretches_.back().times();
            named[target] = true;
            if (fresh && !name_all(mapping.targets[target].name, stretches_.back(), names)) return false;
        }
        return true;
    }

    void begin(std::size_t move, std::size_t arrays, char stand_in) {
        Stretch& next = stretches_.emplace_back();
        next.first = move;
        next.begin = arrays;
        next.stand_in = stand_in;
        if (stand_in != '\0') next.numbers = numbers_[stand_ins.find(stand_in)];
    }

    static bool name_all(const std::string& name, const Stretch& of, std::unordered_set<std::string>& names) {
        if (of.numbers.empty()) return names.insert(name).second;
        return std::ranges::all_of(
            of.numbers, [&](Index number) { return names.insert(with_number(name, of.stand_in, number)).second; });
    }

    static Result<ModelRows> scheduled(const CheckpointMapping& mapping) {
        RESHARD_TRY(auto& schedule, RowSchedule::make(mapping.moves));
        ModelRows made(std::move(schedule));
        made.ends_.reserve(mapping.ends.size());
        for (const auto& [source, target] : mapping.ends) {
            const ShardedTensor& from = mapping.sources[source];
            const ShardedTensor& to = mapping.targets[target];
            made.ends_.push_back({{from.name, to.name}, {from.layout->dtype, to.layout->dtype}});
        }
        return made;
    }

    std::string_view rules_;
    std::string_view tensors_;
    std::vector<ListedTensor> listed_;
    std::vector<std::size_t> block_of_;        // of each listed tensor; 0 if it is listed once
    std::vector<char> stand_in_of_ = {'\0'};   // of each block
    std::vector<std::vector<Index>> numbers_;  // of each stand-in
    std::vector<Stretch> stretches_;
};

Result<ModelRows> ModelRows::make(std::string_view rules, std::string_view tensors) {
    if (auto made = Making(rules, tensors).by_layer()) return *std::move(made);
    // The long way has the error, if there is one.
    RESHARD_TRY(const auto& listed, parse_tensors(tensors));
    return Making::by_tensor(rules, listed);
}

Result<ModelRows> ModelRows::make(std::string_view rules, std::span<const ListedTensor> tensors) {
    std::string text;
    for (const ListedTensor& tensor : tensors) {
        if (tensor.name.empty() || tensor.name.find_first_of(" \t\r\n#{") != std::string::npos)
            return Making::by_tensor(rules, tensors);
        text += fmt::format("{} {}[{}]\n", tensor.name, name(tensor.dtype), fmt::join(tensor.shape, ","));
    }
    if (auto made = Making(rules, text).by_layer()) return *std::move(made);
    return Making::by_tensor(rules, tensors);
}

std::size_t ModelRows::array_count() const {
    return stretches_.empty() ? 0 : stretches_.back().begin + stretches_.back().moves * stretches_.back().times();
}

template <class AnyRow>
std::vector<AnyRow> ModelRows::repeated(const std::vector<AnyRow>& once) const {
    std::vector<AnyRow> all;
    auto begin = once.begin();
    for (const Stretch& stretch : stretches_) {
        const auto end = std::find_if(begin, once.end(), [&](const AnyRow& row) {
            return row.array >= static_cast<Index>(stretch.first + stretch.moves);
        });
        for (std::size_t time = 0; time < stretch.times(); ++time)
            for (auto row = begin; row != end; ++row) {
                all.push_back(*row);
                all.back().array += static_cast<Index>(stretch.begin + time * stretch.moves - stretch.first);
            }
        begin = end;
    }
    return all;
}

std::vector<Row> ModelRows::rows(Index rank, RowSide side) const { return repeated(schedule_.rows(rank, side)); }

std::vector<NestedRow> ModelRows::nested_rows(Index rank, RowSide side) const {
    return repeated(schedule_.nested_rows(rank, side));
}

const ModelRows::Stretch& ModelRows::stretch_of(std::size_t array) const {
    return *std::prev(std::ranges::upper_bound(stretches_, array, {}, &Stretch::begin));
}

const ModelRows::Ends& ModelRows::ends_of(std::size_t array) const {
    const Stretch& stretch = stretch_of(array);
    return ends_[stretch.first + (array - stretch.begin) % stretch.moves];
}

std::pair<std::string, std::string> ModelRows::names(std::size_t array) const {
    const Stretch& stretch = stretch_of(array);
    const auto& [source, target] = ends_of(array).names;
    if (stretch.numbers.empty()) return {source, target};
    const Index number = stretch.numbers[(array - stretch.begin) / stretch.moves];
    return {with_number(source, stretch.stand_in, number), with_number(target, stretch.stand_in, number)};
}

std::pair<DType, DType> ModelRows::dtypes(std::size_t array) const { return ends_of(array).dtypes; }

}  // namespace reshard
