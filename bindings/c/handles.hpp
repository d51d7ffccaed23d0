// The objects behind the handles of the C interface. Shared by its libraries, which are of one version.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
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

/// A handle whose kind is Own::name.
template <class Own>
class HandleOf : public Handle {
public:
    [[nodiscard]] const char* kind() const final { return Own::name; }
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

/// The handle, if it is one of this kind.
template <class T>
Result<T*> need(T* handle) {
    if (handle == nullptr) return fail(Code::usage, std::string(T::name) + " is needed, NULL was given");
    const Handle* const any = handle;
    const std::string_view kind = any->kind();
    if (kind == T::name) return handle;
    return fail(Code::usage, std::string(T::name) + " is needed, " + std::string(kind) + " was given");
}

/// The same of one that may be NULL.
template <class T>
Result<T*> may_have(T* handle) {
    return handle == nullptr ? Result<T*>(nullptr) : need(handle);
}

}  // namespace reshard::c

struct reshard_error final : reshard::c::HandleOf<reshard_error> {
    static constexpr const char* name = "an error";
    reshard_error(int of, reshard::Error what) : code(of), error(shown(std::move(what))), described(describe(error)) {}
    const int code;
    const reshard::Error error;
    const std::string described;

private:
    static reshard::Error shown(reshard::Error what) {
        what.message = reshard::printable(what.message);
        return what;
    }
};

struct reshard_text final : reshard::c::HandleOf<reshard_text> {
    static constexpr const char* name = "a text";
    explicit reshard_text(std::string what) : chars(std::move(what)) {}
    const std::string chars;
};

struct reshard_mesh final : reshard::c::HandleOf<reshard_mesh> {
    static constexpr const char* name = "a mesh";
    explicit reshard_mesh(reshard::Mesh of) : mesh(std::move(of)), text(format(mesh)) {}
    const reshard::Mesh mesh;
    const std::string text;
};

struct reshard_layout final : reshard::c::HandleOf<reshard_layout> {
    static constexpr const char* name = "a layout";
    explicit reshard_layout(reshard::Layout of) : layout(std::move(of)), text(format(layout)) {}
    const reshard::Layout layout;
    const std::string text;
};

struct reshard_machine final : reshard::c::HandleOf<reshard_machine> {
    static constexpr const char* name = "a machine";
    explicit reshard_machine(reshard::Machine of) : machine(std::move(of)), text(format(machine)) {}
    const reshard::Machine machine;
    const std::string text;
};

struct reshard_plan_cache final : reshard::c::HandleOf<reshard_plan_cache> {
    static constexpr const char* name = "a plan cache";
    explicit reshard_plan_cache(std::size_t plans_max) : cache(plans_max) {}
    reshard::PlanCache cache;
};

struct reshard_plan final : reshard::c::HandleOf<reshard_plan> {
    static constexpr const char* name = "a plan";
    reshard_plan(reshard::Synthesis of, reshard::Options asked, bool by_hand)
        : made(std::move(of)), options(std::move(asked)), written(by_hand), text(format(made.plan())) {}
    const reshard::Synthesis made;
    const reshard::Options options;
    const bool written;  // by hand, and judged
    const std::string text;
};

struct reshard_list final : reshard::c::HandleOf<reshard_list> {
    static constexpr const char* name = "a list";
    reshard_list(reshard::ListSynthesis of, reshard::Options asked) : made(std::move(of)), options(std::move(asked)) {}
    const reshard::ListSynthesis made;
    const reshard::Options options;
};

struct reshard_local final : reshard::c::HandleOf<reshard_local> {
    static constexpr const char* name = "a world of local ranks";
    reshard_local(reshard::Index ranks, const reshard::local::Options& options) : world(ranks, options) {}
    reshard::local::World world;
};

struct reshard_backend final : reshard::c::HandleOf<reshard_backend> {
    static constexpr const char* name = "a backend";
    reshard_backend(reshard_local* of, reshard::Backend& rank) : world(of), backend(rank) {}
    explicit reshard_backend(std::unique_ptr<reshard::Backend> own) : owned(std::move(own)), backend(*owned) {}
    const reshard::c::Ref<reshard_local> world;  // whose rank it is
    const std::unique_ptr<reshard::Backend> owned;
    reshard::Backend& backend;
};

struct reshard_memory final : reshard::c::HandleOf<reshard_memory> {
    static constexpr const char* name = "memory";
    reshard_memory(reshard_backend* of, std::unique_ptr<reshard::Memory> own) : backend(of), memory(std::move(own)) {}
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    const std::unique_ptr<reshard::Memory> memory;
};

struct reshard_registration final : reshard::c::HandleOf<reshard_registration> {
    static constexpr const char* name = "a registration";
    reshard_registration(reshard_backend* of, reshard::Registration own) : backend(of), held(std::move(own)) {}
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    reshard::Registration held;
};

struct reshard_executor final : reshard::c::HandleOf<reshard_executor> {
    static constexpr const char* name = "an executor";
    reshard_executor(reshard_backend* of, reshard::Executor own) : backend(of), executor(std::move(own)) {}
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    reshard::Executor executor;
};

struct reshard_bound final : reshard::c::HandleOf<reshard_bound> {
    static constexpr const char* name = "bound buffers";
    explicit reshard_bound(reshard_executor* of) : executor(of) {}
    const reshard::c::Ref<reshard_executor> executor;  // goes last
    std::unique_ptr<reshard::Memory> workspace;        // where the caller brought none
    std::unique_ptr<reshard::Bound> bound;
};

struct reshard_ticket final : reshard::c::HandleOf<reshard_ticket> {
    static constexpr const char* name = "a ticket";
    reshard_ticket(reshard::c::Ref<reshard::c::Handle> of, std::unique_ptr<reshard::Ticket> own)
        : parent(std::move(of)), ticket(std::move(own)) {}
    const reshard::c::Ref<reshard::c::Handle> parent;  // what runs; goes last
    const std::unique_ptr<reshard::Ticket> ticket;
};
