// The NCCL backend: the plans that it prepares, and the memory that it hands out.
#include "reshard/backends/nccl.hpp"

#include <fmt/format.h>

#include "backends/common/fingerprints.hpp"
#include "backends/nccl/launch/device_memory.hpp"
#include "backends/nccl/launch/device_table.hpp"
#include "backends/nccl/launch/run.hpp"
#include "src/base/try.hpp"
#include "src/tables/capabilities.hpp"

namespace reshard::nccl {
namespace {

class NcclBackend final : public Backend {
public:
    explicit NcclBackend(std::unique_ptr<Base> base) : base_(std::move(base)) {}
    ~NcclBackend() override { drop_kept(); }

    [[nodiscard]] std::string_view name() const override { return "nccl"; }
    [[nodiscard]] Index rank() const override { return base_->rank(); }
    [[nodiscard]] Index size() const override { return base_->size(); }
    [[nodiscard]] Capabilities capabilities() const override { return tables::nccl_capabilities(false, 1); }
    [[nodiscard]] Base& base() const { return *base_; }

    Result<void> agree(const Result<std::uint64_t>& own) override {
        const OnDevice current(base_->device());
        const std::uint64_t number = own.value_or(0);
        std::uint64_t least[] = {number, ~number, own ? 1U : 0U};  // the least complement belongs to the greatest
        const Result<void> voted = base_->vote(least, ncclMin);
        if (!own && !voted) return tl::unexpected(own.error());
        RESHARD_CHECK(voted);
        if (least[2] == 0) return base_->first_failure(own.map([](std::uint64_t) {}));
        if (least[0] == ~least[1]) return {};
        RESHARD_TRY(const auto& all, base_->gather(number));
        return same_plans(std::vector<std::optional<Brought>>(all.begin(), all.end()));
    }

    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) override {
        const OnDevice current(base_->device());
        RESHARD_TRY(auto& ready, make_ready(*base_, plans));
        return prepared(std::move(ready));
    }

    Result<std::unique_ptr<Memory>> allocate(Index bytes) override {
        const OnDevice current(base_->device());
        RESHARD_TRY(auto& memory, DeviceMemory::make(*base_, bytes));
        RESHARD_CHECK(memory->enter_registry(base_->world()));
        return std::move(memory);
    }

    // Device memory is not exchanged. NCCL only learns of it, so it may be of any kind, and forks do not matter.
    Result<Registration> register_memory(std::span<std::byte> memory, OnFork) override {
        const OnDevice current(base_->device());
        RESHARD_TRY(auto& held, RegisteredDeviceMemory::make(base_->device(), base_->world(), memory));
        return Registration(memory, std::move(held));
    }

    [[nodiscard]] bool on_device() const override { return true; }
    Result<void> put(std::span<const std::byte> own, std::span<std::byte> memory) override {
        return move(memory.data(), own.data(), own.size(), cudaMemcpyHostToDevice);
    }
    Result<void> get(std::span<const std::byte> memory, std::span<std::byte> own) override {
        return move(own.data(), memory.data(), own.size(), cudaMemcpyDeviceToHost);
    }
    // On the backend's own stream, which orders runs too.
    Result<void> fill(std::span<std::byte> memory, const Slot& slot, std::span<const Box> boxes,
                      std::span<const std::byte> element) override {
        const OnDevice current(base_->device());
        CopySet fills;
        for (const Box& box : boxes)
            fills.fill(BufferId::target, region_of(slot, box, std::ssize(element)), pattern_of(element));
        Placed placed;
        RESHARD_CHECK(fills.place({nullptr, memory.data(), nullptr, nullptr}, placed));
        RESHARD_TRY(const auto& table, upload(*base_, placed.table));
        return issue(placed.launches, table, base_->stream());
    }

private:
    Result<void> move(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
        if (bytes == 0) return {};
        const OnDevice current(base_->device());
        const cudaError_t issued = cudaMemcpyAsync(to, from, bytes, kind, base_->stream());
        RESHARD_CHECK(checked(issued, "cudaMemcpyAsync"));
        return checked(cudaStreamSynchronize(base_->stream()), "cudaStreamSynchronize");
    }
    std::unique_ptr<Base> base_;
};

}  // namespace

namespace {

Result<void> judge(const Options& options) {
    if (options.staging_bytes_max < 0)
        return fail(Code::usage, fmt::format("Options::staging_bytes_max is negative: {}", options.staging_bytes_max));
    if (options.timeout.count() <= 0)
        return fail(Code::usage, fmt::format("Options::timeout is not more than 0: {} ms", options.timeout.count()));
    return {};
}

}  // namespace

Result<std::unique_ptr<Backend>> make_backend(ncclComm_t communicator, const Options& options) {
    const Result<void> well = judge(options);
    RESHARD_TRY(auto& base, Base::make(communicator, well ? options : Options(), well));
    return std::make_unique<NcclBackend>(std::move(base));
}

void refuse(ncclComm_t communicator, const Error& why) {
    static_cast<void>(Base::make(communicator, Options(), tl::unexpected(why)));
}

namespace {

Result<Base*> base_of(const Backend& backend) {
    if (const auto* own = dynamic_cast<const NcclBackend*>(&backend)) return &own->base();
    return fail(Code::usage,
                fmt::format("a backend of nccl::make_backend is needed, this one is '{}'", backend.name()));
}

}  // namespace

Result<std::unique_ptr<Ticket>> start(Bound& bound, cudaStream_t stream, const StartOptions& options) {
    return bound.start_on(stream, options);
}

Result<cudaEvent_t> event(Ticket& run, std::size_t piece) {
    return run.event(piece).map([](void* event) { return static_cast<cudaEvent_t>(event); });
}

Result<void> offer(Ticket& run, std::size_t piece, cudaStream_t stream) { return run.offer_on(piece, stream); }

Result<Index> communicator_bytes(const Backend& backend) {
    return base_of(backend).map([](Base* base) { return base->communicator_bytes(); });
}

Result<std::unique_ptr<Memory>> allocate_window(Backend& backend, const Result<Index>& bytes) {
    RESHARD_TRY(const auto& found, base_of(backend));
    Base& base = *found;
    const OnDevice current(base.device());
    auto memory = bytes.and_then([&](Index count) -> Result<std::unique_ptr<DeviceMemory>> {
        if (count < 0) return fail(Code::usage, fmt::format("{} bytes are less than none", count));
        return DeviceMemory::make(base, count);
    });
    RESHARD_CHECK(base.all_succeeded(memory.map([](const auto&) {})));
    RESHARD_CHECK(base.all_succeeded((*memory)->add_window(base.world(), base.options().timeout)));
    return std::move(*memory);
}

}  // namespace reshard::nccl
