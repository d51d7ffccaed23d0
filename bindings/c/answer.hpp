// How a function of the C interface is written: its body returns a Result, which becomes a code and an error. No
// exception passes.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "bindings/c/handles.hpp"
#include "bindings/c/structures.hpp"
#include "src/base/try.hpp"

namespace reshard::c {

/// Stores the error where the caller wants it. Returns its code, or RESHARD_OUT_OF_MEMORY if the error itself does not
/// fit in memory.
int refuse(reshard_error** place, const Error& error) noexcept;
/// The same for a failure that has no Code.
int refuse(reshard_error** place, int code, const char* sentence) noexcept;

/// Calls a body, which returns a Result, a plain value, or nothing. Returns a Result.
template <class Body, class... Given>
auto result_of(Body& body, Given&&... given) {
    using Made = std::invoke_result_t<Body&, Given...>;
    if constexpr (std::is_void_v<Made>) {
        body(std::forward<Given>(given)...);
        return Result<void>();
    } else if constexpr (requires(const Made& made) { made.error(); }) {
        return body(std::forward<Given>(given)...);
    } else {
        return Result<Made>(body(std::forward<Given>(given)...));
    }
}

/// Runs the body of a call: a function without parameters that returns a Result<void>, or nothing.
template <class Body>
int answer(reshard_error** error, Body&& body) noexcept {
    if (error != nullptr) *error = nullptr;
    try {
        const Result<void> done = result_of(body);
        return done ? RESHARD_OK : refuse(error, done.error());
    } catch (const std::bad_alloc&) {
        return refuse(error, RESHARD_OUT_OF_MEMORY, "there is not enough memory");
    } catch (const std::length_error&) {
        return refuse(error, RESHARD_OUT_OF_MEMORY, "there is not enough memory");
    } catch (const std::exception& thrown) {
        return refuse(error, RESHARD_INTERNAL, thrown.what());
    } catch (...) {
        return refuse(error, RESHARD_INTERNAL, "something unknown was thrown");
    }
}

/// The same for a call on a handle, which the body gets.
template <class T, class Body>
int answer(T* handle, reshard_error** error, Body&& body) noexcept {
    return answer(error, [&]() -> Result<void> {
        RESHARD_TRY(auto* const given, need(handle));
        return result_of(body, *given);
    });
}

/// The place of a handle that a call makes.
template <class T>
Result<void> need_place(T* const* place) {
    if (place != nullptr) return {};
    return fail(Code::usage, std::string("there is no place for ") + T::name + ": NULL");
}

/// The same for a collective call that makes a handle. The body is given whether there is a place, as one of the
/// arguments that it may have to tell the other ranks of. It returns a new handle, or what a new handle holds.
template <class T, class Body>
int make_together(T** place, reshard_error** error, Body&& body) noexcept {
    if (place != nullptr) *place = nullptr;
    return answer(error, [&]() -> Result<void> {
        RESHARD_TRY(auto& made, result_of(body, need_place(place)));
        if constexpr (std::is_same_v<std::decay_t<decltype(made)>, std::unique_ptr<T>>)
            *place = made.release();
        else
            *place = new T(std::move(made));
        return {};
    });
}

/// The same for a call of one rank.
template <class T, class Body>
int make(T** place, reshard_error** error, Body&& body) noexcept {
    return make_together(place, error, [&](const Result<void>& placed) -> decltype(result_of(body)) {
        RESHARD_CHECK(placed);
        return result_of(body);
    });
}

/// The same for a call on a handle, which the body gets.
template <class T, class Of, class Body>
int make(T** place, Of* handle, reshard_error** error, Body&& body) noexcept {
    return make(place, error, [&]() -> decltype(result_of(body, *handle)) {
        RESHARD_TRY(auto* const given, need(handle));
        return result_of(body, *given);
    });
}

/// The result of a call that has no place for an error: the number, or -1 after an exception.
template <class Body>
std::int64_t number(Body&& body) noexcept {
    try {
        return body();
    } catch (...) {
        return -1;
    }
}

/// Text of the caller's, by its name.
[[nodiscard]] Result<std::string_view> need_text(const char* text, const char* name);

/// A count of bytes or of things that is not below `least`.
[[nodiscard]] Result<std::size_t> need_count(std::int64_t count, std::int64_t least, const char* name);

/// Memory of the caller's: NULL only where it has no bytes.
[[nodiscard]] Result<std::span<const std::byte>> need_bytes(const void* address, std::int64_t bytes, const char* name);
[[nodiscard]] Result<std::span<std::byte>> need_bytes(void* address, std::int64_t bytes, const char* name);

/// How an array of this target changes while it moves.
[[nodiscard]] Result<MoveOptions> changes_of(const reshard_move_options* options, const Layout& target);

/// A move on one rank: the layouts, how the array changes, and the tiles.
struct Tiles {
    const Layout* source;
    const Layout* target;
    MoveOptions options;
    std::span<const std::byte> in;
    std::span<std::byte> out;
};
/// Checks the arguments of a redistribute that starts. Collective. `place` is an error if the caller gave no place for
/// the result. A rank whose arguments are wrong tells the others.
[[nodiscard]] Result<Tiles> need_tiles(Backend& backend, const Result<void>& place, const reshard_layout* source,
                                       const reshard_layout* target, const reshard_move_options* options,
                                       const void* in, std::int64_t in_bytes, void* out, std::int64_t out_bytes);

/// The body of every redistribute. Collective.
[[nodiscard]] Result<void> move_tiles(Backend& backend, const reshard_layout* source, const reshard_layout* target,
                                      const reshard_move_options* options, const void* in, std::int64_t in_bytes,
                                      void* out, std::int64_t out_bytes);

/// `count` pairs of layouts.
[[nodiscard]] Result<std::vector<Problem>> problems_of(const reshard_layout* const* sources,
                                                       const reshard_layout* const* targets, std::int64_t count);

/// Arguments of a collective call, read before it. A rank whose arguments are wrong brings its error to the agreement
/// of the call. The other ranks, which agree inside the call, fail with that error and do not wait.
template <class T>
Result<T> or_tell(Backend& backend, Result<T> arguments) {
    if (!arguments) static_cast<void>(backend.agree(tl::unexpected(arguments.error())));
    return arguments;
}

/// Arguments of a run. Ranks that wait for one whose arguments are wrong are told.
template <class Prepared, class T>
Result<T> or_excuse(Prepared& prepared, Result<T> arguments) {
    if (!arguments) prepared.report_failure(arguments.error());
    return arguments;
}

/// Starts a run. Ranks that wait for one whose arguments are wrong are told.
template <class Prepared>
Result<std::unique_ptr<Ticket>> started(Prepared& prepared, Result<std::vector<Buffers>> buffers) {
    RESHARD_TRY(const auto& given, or_excuse(prepared, std::move(buffers)));
    RESHARD_TRY(auto& bound, prepared.bind(given));
    return bound->start();
}

/// Waits for the end of a run.
[[nodiscard]] Result<void> done(Result<std::unique_ptr<Ticket>> run);

/// The ticket of a run of `parent`.
[[nodiscard]] Result<std::unique_ptr<reshard_ticket>> ticket_of(Handle& parent, Result<std::unique_ptr<Ticket>> run);

/// Handles cross from one library to the other, so that both must be of one version.
[[nodiscard]] Result<void> same_version();

/// The body of a collective call that makes a backend. `asked` reads the options and `make` makes a backend with them.
/// A rank whose options are wrong tells the others by `tell`.
template <class Asked, class Tell, class Make>
int make_backend(reshard_backend** place, reshard_error** error, Asked&& asked, Tell&& tell, Make&& make) noexcept {
    return make_together(place, error, [&](const Result<void>& placed) -> Result<std::unique_ptr<Backend>> {
        RESHARD_CHECK(same_version());
        const auto options = placed.and_then(asked);
        if (!options) tell(options.error());
        RESHARD_CHECK(options);
        return make(*options);
    });
}

/// The place of an array of `dims` dimensions. Nothing for NULL, which is row-major.
[[nodiscard]] Result<std::optional<Storage>> storage_of(const reshard_storage* given, std::size_t dims);

/// The options of a planner.
[[nodiscard]] Result<Options> options_of(const reshard_options* given);

}  // namespace reshard::c
