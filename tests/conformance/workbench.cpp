#include "workbench.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace reshard::conformance {
namespace {

constexpr std::byte guard{0x3c};
constexpr std::size_t guard_bytes = 64;

// The reduction of a plan's summands, if it has any. Plans of these tests use a single reduction.
std::optional<Reduction> reduction_of(const Plan& plan) {
    if (!plan.source.unreduced.empty()) return plan.source.reduction;
    for (const Step& step : plan.steps)
        if (!step.layout.unreduced.empty()) return step.layout.reduction;
    return std::nullopt;
}

// Registered memory between a neighbour's bytes, which no one may touch.
class RegisteredMemory final : public Memory {
public:
    explicit RegisteredMemory(Index bytes)
        : pages_(static_cast<std::size_t>(bytes) + 4 * page, neighbour),
          start_(pages_.data() + offset_of(bytes)),
          bytes_(static_cast<std::size_t>(bytes)) {}
    ~RegisteredMemory() override {
        const auto ended = registration_.end();
        EXPECT_TRUE(ended) << ended.error().message;
        const auto untouched = [](auto some) {
            return std::ranges::all_of(some, [](std::byte one) { return one == neighbour; });
        };
        EXPECT_TRUE(untouched(std::span(pages_.data(), start_)));
        EXPECT_TRUE(untouched(std::span(start_ + bytes_, pages_.data() + pages_.size())));
    }
    bool enter(Backend& backend) {
        auto registered = backend.register_memory(bytes());
        EXPECT_TRUE(registered) << registered.error().message;
        if (registered) registration_ = std::move(*registered);
        return registered.has_value();
    }
    std::span<std::byte> bytes() override { return {start_, bytes_}; }

private:
    static constexpr std::size_t page = 4096;
    static constexpr std::byte neighbour{0x7e};
    // Puts a page border near the middle, on an element's boundary.
    [[nodiscard]] std::size_t offset_of(Index bytes) const {
        const std::size_t before = static_cast<std::size_t>(bytes) / 2 % page / 16 * 16;
        return (2 * page - before - reinterpret_cast<std::uintptr_t>(pages_.data()) % page) % page;
    }
    std::vector<std::byte> pages_;
    std::byte* start_;
    std::size_t bytes_;
    Registration registration_;
};

}  // namespace

std::unique_ptr<Memory> registered_memory(Backend& backend, Index bytes) {
    auto memory = std::make_unique<RegisteredMemory>(bytes);
    return memory->enter(backend) ? std::move(memory) : nullptr;
}

Workbench::Workbench(const Item& item, Index rank, std::uint64_t salt, Index workspace_size, bool donate)
    : source(image_of(item.plan.source, item.plan.source, rank, item.source, salt, reduction_of(item.plan))),
      target(blank_of(item.plan.target, rank, item.target)),
      workspace(static_cast<std::size_t>(workspace_size) + guard_bytes, guard),
      source_wanted(source),
      target_wanted(image_of(item.plan.target, item.plan.source, rank, item.target, salt, reduction_of(item.plan))),
      workspace_bytes(workspace_size),
      layout_(item.plan.source),
      style_(item.source),
      rank_(rank),
      donate_(donate) {}

Buffers Workbench::buffers() {
    const auto used = std::span(workspace).first(static_cast<std::size_t>(workspace_bytes));
    if (donate_) return {{}, target.bytes, used, source.bytes};
    return {source.bytes, target.bytes, used};
}

std::string Workbench::wrong() const {
    if (auto text = difference(target, target_wanted); !text.empty()) return "target: " + text;
    if (auto text = difference(outside(source), outside(source_wanted)); !text.empty()) return "source: " + text;
    const auto tail = std::span(workspace).subspan(static_cast<std::size_t>(workspace_bytes));
    if (!std::ranges::all_of(tail, [](std::byte byte) { return byte == guard; })) return "written past the workspace";
    return {};
}

Image Workbench::outside(const Image& image) const {
    return donate_ ? without_tile(image, layout_, rank_, style_) : image;
}

void Workbench::refill(const Workbench& fresh) {
    std::ranges::copy(fresh.source.bytes, source.bytes.begin());
    std::ranges::copy(fresh.target.bytes, target.bytes.begin());
    source_wanted = fresh.source_wanted;
    target_wanted = fresh.target_wanted;
}

Storages storages_of(const Item& item, Index rank) {
    const auto source = tile_by_arithmetic(item.plan.source, rank);
    const auto target = tile_by_arithmetic(item.plan.target, rank);
    Storages storages;
    if (source) storages.source = storage_of(item.source, *source);
    if (target) storages.target = storage_of(item.target, *target);
    return storages;
}

Buffers Lent::buffers(Workbench& bench) const {
    Buffers all = bench.buffers();
    if (source) (all.donated.empty() ? all.source : all.donated) = source->bytes();
    if (target) all.target = target->bytes();
    return all;
}

void Lent::lend(const Workbench& bench) const {
    if (source) std::ranges::copy(bench.source.bytes, source->bytes().begin());
    if (target) std::ranges::copy(bench.target.bytes, target->bytes().begin());
}

void Lent::take_back(Workbench& bench) const {
    if (source) std::ranges::copy(source->bytes(), bench.source.bytes.begin());
    if (target) std::ranges::copy(target->bytes(), bench.target.bytes.begin());
}

}  // namespace reshard::conformance
