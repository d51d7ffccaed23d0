// The objects behind the handles of the C interface. Shared by its libraries, which are of one version.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "reshard/backends/local.hpp"
#include "reshard/c.h"
#include "reshard/redistribute.hpp"
#include "reshard/text.hpp"
#include "src/base/printable.hpp"

namespace reshard::c {

/// First in every handle, so that one function counts them all and a handle of another kind is told.
class Handle : NonCopyable {
public:
    virtual ~Handle() = default;
    [[nodiscard]] virtual const char* kind() const = 0;  ///< a mesh, a layout, ...

    void retain() const { owners_.fetch_add(1, std::memory_order_relaxed); }
    void release() const {
        if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

private:
    mutable std::atomic<std::int64_t> owners_ = 1;
};

/// One owner of a handle.
template <class T>
class Ref {
public:
    Ref() = default;
    /// One more owner of a handle.
    explicit Ref(T* shared) : handle_(shared) {
        if (handle_ != nullptr) handle_->retain();
    }
    Ref(const Ref& other) : Ref(other.handle_) {}
    Ref(Ref&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Ref() {
        if (handle_ != nullptr) handle_->release();
    }
    [[nodiscard]] T* get() const { return handle_; }
    [[nodiscard]] T& operator*() const { return *handle_; }
    [[nodiscard]] T* operator->() const { return handle_; }
    [[nodiscard]] explicit operator bool() const { return handle_ != nullptr; }

private:
    T* handle_ = nullptr;
};

}  // namespace reshard::c

struct reshard_error final : reshard::c::Handle {
    static constexpr const char* name = "an error";
    reshard_error(int of, reshard::Error what) : code(of), error(shown(std::move(what))), described(describe(error)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const int code;
    const reshard::Error error;
    const std::string described;

private:
    static reshard::Error shown(reshard::Error what) {
        what.message = reshard::printable(what.message);
        return what;
    }
};

struct reshard_text final : reshard::c::Handle {
    static constexpr const char* name = "a text";
    explicit reshard_text(std::string what) : chars(std::move(what)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const std::string chars;
};

struct reshard_mesh final : reshard::c::Handle {
    static constexpr const char* name = "a mesh";
    explicit reshard_mesh(reshard::Mesh of) : mesh(std::move(of)), text(format(mesh)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::Mesh mesh;
    const std::string text;
};

struct reshard_layout final : reshard::c::Handle {
    static constexpr const char* name = "a layout";
    explicit reshard_layout(reshard::Layout of) : layout(std::move(of)), text(format(layout)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::Layout layout;
    const std::string text;
};

struct reshard_machine final : reshard::c::Handle {
    static constexpr const char* name = "a machine";
    explicit reshard_machine(reshard::Machine of) : machine(std::move(of)), text(format(machine)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::Machine machine;
    const std::string text;
};

struct reshard_plan_cache final : reshard::c::Handle {
    static constexpr const char* name = "a plan cache";
    explicit reshard_plan_cache(std::size_t plans_max) : cache(plans_max) {}
    [[nodiscard]] const char* kind() const override { return name; }
    reshard::PlanCache cache;
};

struct reshard_plan final : reshard::c::Handle {
    static constexpr const char* name = "a plan";
    reshard_plan(reshard::Synthesis of, reshard::Options asked, bool by_hand)
        : made(std::move(of)), options(std::move(asked)), written(by_hand), text(format(made.plan())) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::Synthesis made;
    const reshard::Options options;
    const bool written;  // by hand, and judged
    const std::string text;
};

struct reshard_list final : reshard::c::Handle {
    static constexpr const char* name = "a list";
    reshard_list(reshard::ListSynthesis of, reshard::Options asked) : made(std::move(of)), options(std::move(asked)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::ListSynthesis made;
    const reshard::Options options;
};

struct reshard_local final : reshard::c::Handle {
    static constexpr const char* name = "a world of local ranks";
    reshard_local(reshard::Index ranks, const reshard::local::Options& options) : world(ranks, options) {}
    [[nodiscard]] const char* kind() const override { return name; }
    reshard::local::World world;
};

struct reshard_backend final : reshard::c::Handle {
    static constexpr const char* name = "a backend";
    reshard_backend(reshard_local* of, reshard::Backend& rank) : world(of), backend(rank) {}
    explicit reshard_backend(std::unique_ptr<reshard::Backend> own) : owned(std::move(own)), backend(*owned) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::c::Ref<reshard_local> world;  // whose rank it is
    const std::unique_ptr<reshard::Backend> owned;
    reshard::Backend& backend;
};

struct reshard_memory final : reshard::c::Handle {
    static constexpr const char* name = "memory";
    reshard_memory(reshard_backend* of, std::unique_ptr<reshard::Memory> own) : backend(of), memory(std::move(own)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    const std::unique_ptr<reshard::Memory> memory;
};

struct reshard_registration final : reshard::c::Handle {
    static constexpr const char* name = "a registration";
    reshard_registration(reshard_backend* of, reshard::Registration own) : backend(of), held(std::move(own)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    reshard::Registration held;
};

struct reshard_executor final : reshard::c::Handle {
    static constexpr const char* name = "an executor";
    reshard_executor(reshard_backend* of, reshard::Executor own) : backend(of), executor(std::move(own)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    reshard::Executor executor;
};

struct reshard_bound final : reshard::c::Handle {
    static constexpr const char* name = "bound buffers";
    explicit reshard_bound(reshard_executor* of) : executor(of) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::c::Ref<reshard_executor> executor;  // goes last
    std::unique_ptr<reshard::Memory> workspace;        // where the caller brought none
    std::unique_ptr<reshard::Bound> bound;
};

struct reshard_ticket final : reshard::c::Handle {
    static constexpr const char* name = "a ticket";
    reshard_ticket(reshard::c::Ref<reshard::c::Handle> of, std::unique_ptr<reshard::Ticket> own)
        : parent(std::move(of)), ticket(std::move(own)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::c::Ref<reshard::c::Handle> parent;  // what runs; goes last
    const std::unique_ptr<reshard::Ticket> ticket;
};
