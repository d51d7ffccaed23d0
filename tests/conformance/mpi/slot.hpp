// Memory as in programs: at any offset, with registered parts. Its neighbours hold a pattern.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "reshard/backends/backend.hpp"

namespace reshard::conformance {

class Slot {
public:
    enum class Kind { vector, heap, mapped };
    static constexpr std::array<Kind, 3> kinds = {Kind::vector, Kind::heap, Kind::mapped};

    explicit Slot(std::size_t bytes, Kind kind = Kind::vector, std::size_t offset = 16)
        : kind_(kind), offset_(offset), bytes_(bytes) {
        take();
        std::ranges::fill(around(), neighbour);
        remember();
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() {
        registrations_.clear();
        give_back();
    }

    [[nodiscard]] std::span<std::byte> bytes() const { return {start_ + offset_, bytes_}; }
    [[nodiscard]] std::span<std::byte> around() const { return {start_, offset_ + bytes_ + tail}; }
    [[nodiscard]] std::size_t registrations() const { return registrations_.size(); }

    /// These return the fault; empty if all is well.
    std::string enter(Backend& backend, std::span<std::byte> some) {
        auto registration = backend.register_memory(some);
        if (!registration) return registration.error().message;
        registrations_.push_back(std::move(*registration));
        takes_pages_ = backend.memory_use().registered_bytes > 0;
        return read();
    }
    std::string leave() {
        std::string wrong;
        for (Registration& one : registrations_) {
            if (const auto ended = one.end(); !ended) wrong = ended.error().message;
        }
        registrations_.clear();
        return wrong;
    }
    /// A caller's mistake: when the registration ends, the addresses belong to someone else.
    std::string lose() {
        if (kind_ != Kind::mapped || registrations_.empty()) return leave();
        const bool has_pages = takes_pages_ && registrations_.front().bytes().size() > 2 * std::size_t{4096};
        static_cast<void>(mmap(start_, around().size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
        const std::string lost = leave();
        const bool found = lost.find("were freed or mapped anew") != std::string::npos;
        return found || !has_pages ? std::string() : "that the memory is lost was not found: " + lost;
    }
    /// A vector grows and may move; other memory stays.
    std::string resize() {
        if (auto wrong = leave(); !wrong.empty() || kind_ != Kind::vector) return wrong;
        vector_.resize(vector_.size() + 5000, neighbour);
        start_ = vector_.data();
        return read();
    }
    std::string read() const {
        if (!is_as_remembered()) return "contents are lost";
        return neighbours_are_whole() ? "" : "neighbours were written";
    }

    void remember() { remembered_.assign(bytes().begin(), bytes().end()); }
    /// Allocates nothing.
    [[nodiscard]] bool is_as_remembered() const { return std::ranges::equal(bytes(), remembered_); }
    [[nodiscard]] bool neighbours_are_whole() const {
        const auto whole = [](std::span<const std::byte> some) {
            return std::ranges::all_of(some, [](std::byte one) { return one == neighbour; });
        };
        return whole(around().first(offset_)) && whole(around().last(tail));
    }

private:
    static constexpr std::byte neighbour{0x3c};
    static constexpr std::size_t tail = 2000;

    void take() {
        const std::size_t all = offset_ + bytes_ + tail;
        if (kind_ == Kind::vector) {
            vector_.resize(all);
            start_ = vector_.data();
        } else if (kind_ == Kind::heap) {
            start_ = static_cast<std::byte*>(std::malloc(all));
        } else {
            start_ =
                static_cast<std::byte*>(mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        }
    }
    void give_back() const {
        if (kind_ == Kind::heap) std::free(start_);
        if (kind_ == Kind::mapped) munmap(start_, around().size());
    }

    Kind kind_;
    std::size_t offset_;
    std::size_t bytes_;
    std::byte* start_ = nullptr;
    std::vector<std::byte> vector_;
    std::vector<std::byte> remembered_;
    std::vector<Registration> registrations_;
    bool takes_pages_ = false;
};

}  // namespace reshard::conformance
