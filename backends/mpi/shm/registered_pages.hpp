// Memory of the caller's that peers map. Its whole pages are exchanged, under their addresses, for pages of a file of
// their own (memfd) with the same contents, step by step; the two pages that it has in part stay as they are, and each
// has a shadow in the file. So peers see one stretch of memory, at any offset and of any size.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "backends/mpi/shm/mappings.hpp"
#include "backends/mpi/shm/segment.hpp"
#include "reshard/backends/backend.hpp"

namespace reshard::mpi {

class RegisteredPages : NonCopyable {
public:
    /// Most bytes that are held beside the memory while pages are exchanged, there and back.
    static constexpr Index step_bytes = Index{8} << 20;

    /// Told of bytes that are taken (more than 0) and given back. Called from whichever thread.
    using Held = std::function<void(Index)>;

    /// Errors: usage, with the reason, where the memory is of a kind that cannot be exchanged; backend where a step
    /// fails, and then those before it are undone.
    [[nodiscard]] static Result<std::shared_ptr<RegisteredPages>> make(std::span<std::byte> memory, OnFork on_fork,
                                                                       Held held);
    ~RegisteredPages();

    /// Private pages again. Errors: usage while somebody uses it; backend where a part shows something else by now,
    /// which stays as it is.
    Result<void> end();
    [[nodiscard]] bool ended() const { return ended_; }

    /// Whether its addresses still show its pages.
    [[nodiscard]] bool is_intact() const { return shows(view()); }

    [[nodiscard]] const AddressRange& range() const { return range_; }
    [[nodiscard]] AddressRange whole_pages() const { return pages_; }
    [[nodiscard]] const SegmentName& name() const { return name_; }
    [[nodiscard]] Index offset_of(std::uintptr_t address) const { return static_cast<Index>(address - base_); }

    /// The parts that lie in pages shared with other memory. May be empty.
    [[nodiscard]] const std::array<AddressRange, 2>& partial() const { return partial_; }
    /// The place where peers see a byte of these pages.
    [[nodiscard]] std::byte* shadow_of(std::uintptr_t address) const;

    /// A run that reads or writes the memory holds one.
    class Use {
    public:
        explicit Use(std::shared_ptr<RegisteredPages> pages) : pages_(std::move(pages)) { ++pages_->uses_; }
        Use(Use&&) noexcept = default;
        Use& operator=(Use&&) = delete;
        ~Use() {
            if (pages_) --pages_->uses_;
        }

    private:
        std::shared_ptr<RegisteredPages> pages_;
    };

private:
    RegisteredPages(std::span<std::byte> memory, OnFork on_fork, Held held);
    [[nodiscard]] FileView view() const;
    Result<void> open();
    Result<void> take_all();
    Result<void> make_shadows();
    Result<void> share(const AddressRange& step);
    Result<void> put_back(AddressRange pages);
    bool make_private(const AddressRange& step);
    [[nodiscard]] Result<std::vector<AddressRange>> still_shown() const;
    [[nodiscard]] bool seen_by_nobody() const;
    void drop_from_file(const AddressRange& step) const;
    void close();

    AddressRange range_;
    AddressRange pages_;                      // the whole ones
    std::array<AddressRange, 2> partial_;     // the rest
    std::array<std::byte*, 2> shadows_ = {};  // a page each, mapped
    std::uintptr_t base_;                     // the address of the file's first byte
    OnFork on_fork_;
    Held held_;
    SegmentName name_;
    std::string file_name_;  // as /proc has it
    std::uint64_t forks_;    // of this process before
    bool ended_ = false;
    std::atomic<int> uses_ = 0;
};

}  // namespace reshard::mpi
