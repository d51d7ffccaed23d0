// Memory of the caller that peers map. Its whole pages are exchanged, step by step and at the same addresses, for pages
// of a memory file (memfd) with the same contents. The two pages that it fills only in part stay as they are, and each
// has a shadow page in the file. So peers see one range of memory, at any offset and of any size.
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
    /// The most extra bytes that are held while pages are exchanged, there and back.
    static constexpr Index step_bytes = Index{8} << 20;

    /// Called with the bytes that are allocated (above 0) or given back (below 0), from any thread.
    using Held = std::function<void(Index)>;

    /// Errors: usage, with the reason, if memory of this kind cannot be exchanged. Backend if a step fails; the steps
    /// before it are undone then.
    [[nodiscard]] static Result<std::shared_ptr<RegisteredPages>> make(std::span<std::byte> memory, OnFork on_fork,
                                                                       Held held);
    ~RegisteredPages();

    /// Makes the pages private again. Errors: usage while a run uses them. Backend if a part shows something else by
    /// now; that part stays as it is.
    Result<void> end();
    [[nodiscard]] bool ended() const { return ended_; }

    /// Whether the addresses still show the pages of the file.
    [[nodiscard]] bool is_intact() const { return shows(view()); }

    [[nodiscard]] const AddressRange& range() const { return range_; }
    [[nodiscard]] AddressRange whole_pages() const { return pages_; }
    [[nodiscard]] const SegmentName& name() const { return name_; }
    [[nodiscard]] Index offset_of(std::uintptr_t address) const { return static_cast<Index>(address - base_); }

    /// The parts of the range that do not fill their page. Either may be empty.
    [[nodiscard]] const std::array<AddressRange, 2>& partial() const { return partial_; }
    /// The address at which peers see a byte of these parts.
    [[nodiscard]] std::byte* shadow_of(std::uintptr_t address) const;

    /// A run holds one while it reads or writes the memory.
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
    AddressRange pages_;                      // the whole pages
    std::array<AddressRange, 2> partial_;     // the rest of the range
    std::array<std::byte*, 2> shadows_ = {};  // a page each, mapped
    std::uintptr_t base_;                     // the address of the file's first byte
    OnFork on_fork_;
    Held held_;
    SegmentName name_;
    std::string file_name_;  // as /proc shows it
    std::uint64_t forks_;    // of this process before the registration
    bool ended_ = false;
    std::atomic<int> uses_ = 0;
};

}  // namespace reshard::mpi
