#include "mirrored.hpp"

#include <algorithm>

#include "src/copy/page_memory.hpp"

namespace reshard::conformance {
namespace {

// One buffer of the program and its mirror. Every second mirror begins 8 bytes into its memory, so that the widest
// accesses are not always possible.
class Mirror {
public:
    static Result<Mirror> make(Backend& backend, std::span<const std::byte> read, std::span<std::byte> written,
                               std::size_t shift) {
        Mirror made;
        made.backend_ = &backend;
        made.read_ = read;
        made.written_ = written;
        auto memory = backend.allocate(static_cast<Index>(read.size() + shift));
        if (!memory) return tl::unexpected(memory.error());
        made.memory_ = std::move(*memory);
        made.bytes_ = made.memory_->bytes().subspan(shift);
        return made;
    }
    [[nodiscard]] bool is_of(std::span<const std::byte> read) const {
        return read.data() == read_.data() && read.size() == read_.size() && !read.empty();
    }
    [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
    void write_to(std::span<std::byte> written) { written_ = written; }  // a source that a run writes in place
    [[nodiscard]] Result<void> up() const { return backend_->put(read_, bytes_); }
    [[nodiscard]] Result<void> down() const {
        return written_.empty() ? Result<void>() : backend_->get(bytes_, written_);
    }

private:
    Mirror() = default;
    Backend* backend_ = nullptr;
    std::span<const std::byte> read_;
    std::span<std::byte> written_;
    std::unique_ptr<Memory> memory_;
    std::span<std::byte> bytes_;
};

// One mirror per buffer, even if several arrays of the list lie in it. The pieces of a split run share all three
// buffers.
using Mirrors = std::vector<std::unique_ptr<Mirror>>;

class MirroredTicket final : public Ticket {
public:
    MirroredTicket(std::unique_ptr<Ticket> inner, const Mirrors& mirrors)
        : inner_(std::move(inner)), mirrors_(mirrors) {}
    Result<bool> test() override {
        const auto done = inner_->test();
        if (!done || !*done) return done;
        return finish().map([] { return true; });
    }
    Result<void> wait() override {
        if (auto done = inner_->wait(); !done) return done;
        return finish();
    }

private:
    Result<void> finish() {
        if (finished_) return {};
        finished_ = true;
        for (const auto& mirror : mirrors_)
            if (auto done = mirror->down(); !done) return done;
        return {};
    }
    std::unique_ptr<Ticket> inner_;
    const Mirrors& mirrors_;
    bool finished_ = false;
};

class MirroredBound final : public Bound {
public:
    MirroredBound(std::unique_ptr<Bound> inner, Mirrors mirrors)
        : mirrors_(std::move(mirrors)), inner_(std::move(inner)) {}
    Result<std::unique_ptr<Ticket>> start() override {
        for (const auto& mirror : mirrors_)
            if (auto done = mirror->up(); !done) return tl::unexpected(done.error());
        auto ticket = inner_->start();
        if (!ticket) return ticket;
        return std::make_unique<MirroredTicket>(std::move(*ticket), mirrors_);
    }
    [[nodiscard]] std::vector<double> step_seconds() const override { return inner_->step_seconds(); }

private:
    Mirrors mirrors_;
    std::unique_ptr<Bound> inner_;
};

class MirroredPrepared final : public Prepared {
public:
    MirroredPrepared(Backend& backend, std::unique_ptr<Prepared> inner) : backend_(backend), inner_(std::move(inner)) {}
    [[nodiscard]] Index staging_bytes() const override { return inner_->staging_bytes(); }
    Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers) override {
        Mirrors mirrors;
        std::vector<Buffers> there;
        Result<void> made;
        const auto mirrored = [&](std::span<const std::byte> read, std::span<std::byte> written) {
            const auto known = std::ranges::find_if(mirrors, [&](const auto& one) { return one->is_of(read); });
            if (known != mirrors.end()) {
                if (!written.empty()) (*known)->write_to(written);
                return (*known)->bytes();
            }
            auto mirror = Mirror::make(backend_, read, written, mirrors.size() % 2 * 8);
            if (!mirror) made = tl::unexpected(mirror.error());
            if (!mirror) return std::span<std::byte>();
            mirrors.push_back(std::make_unique<Mirror>(std::move(*mirror)));
            return mirrors.back()->bytes();
        };
        for (const Buffers& one : buffers) {
            const auto source = mirrored(one.source, one.donated);
            there.push_back({source, mirrored(one.target, one.target), mirrored(one.workspace, one.workspace)});
            if (!one.donated.empty()) there.back().donated = source;
        }
        if (!made) return tl::unexpected(made.error());
        auto bound = inner_->bind(there);
        if (!bound) return bound;
        return std::make_unique<MirroredBound>(std::move(*bound), std::move(mirrors));
    }

private:
    Backend& backend_;
    std::unique_ptr<Prepared> inner_;
};

class MirroredBackend final : public Backend {
public:
    explicit MirroredBackend(Backend& inner) : inner_(inner) {}
    [[nodiscard]] std::string_view name() const override { return inner_.name(); }
    [[nodiscard]] Index rank() const override { return inner_.rank(); }
    [[nodiscard]] Index size() const override { return inner_.size(); }
    [[nodiscard]] Capabilities capabilities() const override { return inner_.capabilities(); }
    Result<void> agree(const Result<std::uint64_t>& own) override { return inner_.agree(own); }
    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) override {
        auto made = inner_.prepare(std::move(plans));
        if (!made) return made;
        return std::make_unique<MirroredPrepared>(inner_, std::move(*made));
    }
    Result<std::unique_ptr<Memory>> allocate(Index bytes) override { return allocate_pages(bytes); }

    [[nodiscard]] Backend& inner() const { return inner_; }

private:
    Backend& inner_;
};

}  // namespace

std::unique_ptr<Backend> mirrored(Backend& inner) { return std::make_unique<MirroredBackend>(inner); }
Backend& behind_mirrors(Backend& backend) { return dynamic_cast<MirroredBackend&>(backend).inner(); }

}  // namespace reshard::conformance
