#include "bindings/c/answer.hpp"

namespace reshard::c {

static_assert(static_cast<int>(Code::syntax) + 1 == RESHARD_SYNTAX);
static_assert(static_cast<int>(Code::backend) + 1 == RESHARD_BACKEND);

int refuse(reshard_error** place, const Error& error) noexcept {
    const int code = static_cast<int>(error.code) + 1;
    if (place == nullptr) return code;
    try {
        *place = new reshard_error(code, error);
        return code;
    } catch (const std::bad_alloc&) {
        return RESHARD_OUT_OF_MEMORY;
    }
}

int refuse(reshard_error** place, int code, const char* sentence) noexcept {
    if (place == nullptr) return code;
    try {
        *place = new reshard_error(code, Error{Code::backend, sentence});
        return code;
    } catch (const std::bad_alloc&) {
        return RESHARD_OUT_OF_MEMORY;
    }
}

Result<std::string_view> need_text(const char* text, const char* name) {
    if (text == nullptr) return fail(Code::usage, std::string("text is needed for `") + name + "`, NULL was given");
    return std::string_view(text);
}

Result<std::size_t> need_count(std::int64_t count, std::int64_t least, const char* name) {
    if (count >= least) return static_cast<std::size_t>(count);
    return fail(Code::usage, std::string("`") + name + "` is " + std::to_string(count) + ", at least " +
                                 std::to_string(least) + " is needed");
}

Result<std::span<const std::byte>> need_bytes(const void* address, std::int64_t bytes, const char* name) {
    RESHARD_TRY(const std::size_t count, need_count(bytes, 0, name));
    if (address == nullptr && count > 0) {
        return fail(Code::usage,
                    std::string("`") + name + "` is NULL, " + std::to_string(count) + " bytes were promised");
    }
    return std::span(static_cast<const std::byte*>(address), count);
}

Result<std::span<std::byte>> need_bytes(void* address, std::int64_t bytes, const char* name) {
    RESHARD_TRY(const auto seen, need_bytes(static_cast<const void*>(address), bytes, name));
    return std::span(static_cast<std::byte*>(address), seen.size());
}

Result<MoveOptions> changes_of(const reshard_move_options* options, const Layout& target) {
    RESHARD_TRY(const auto& given,
                structure<reshard_move_options>(options, RESHARD_MOVE_OPTIONS_INITIALIZER, "reshard_move_options"));
    MoveOptions changes{.cast = given.cast != 0};
    RESHARD_TRY(const std::size_t dims, need_count(given.permute_count, 0, "permute_count"));
    if (given.permute == nullptr && dims > 0)
        return fail(Code::usage, "`permute` is NULL, " + std::to_string(dims) + " entries were promised");
    changes.permute.assign(given.permute, given.permute + dims);
    if (given.pad == 0 && given.fill != nullptr) return fail(Code::usage, "`fill` is given, but `pad` is 0");
    if (given.pad == 0) return changes;
    const auto* const fill = static_cast<const std::byte*>(given.fill);
    changes.fill.emplace(fill, fill == nullptr ? fill : fill + size_of(target.dtype));
    return changes;
}

Result<std::optional<Storage>> storage_of(const reshard_storage* given, std::size_t dims) {
    if (given == nullptr) return std::nullopt;
    RESHARD_CHECK(known_size<reshard_storage>(given->size, "reshard_storage"));
    if (given->dims != static_cast<int64_t>(dims)) {
        return fail(Code::mismatch, "the array has " + std::to_string(dims) + " dimensions, the storage " +
                                        std::to_string(given->dims));
    }
    if (given->strides == nullptr && dims > 0) return fail(Code::usage, "strides are needed, NULL was given");
    if (dims == 0) return Storage{given->offset, {}};
    return Storage{given->offset, std::vector<Index>(given->strides, given->strides + dims)};
}

Result<Tiles> need_tiles(Backend& backend, const Result<void>& place, const reshard_layout* source,
                         const reshard_layout* target, const reshard_move_options* options, const void* in,
                         std::int64_t in_bytes, void* out, std::int64_t out_bytes) {
    const auto tiles = [&]() -> Result<Tiles> {
        RESHARD_CHECK(place);
        RESHARD_TRY(const auto* const from, need(source));
        RESHARD_TRY(const auto* const to, need(target));
        RESHARD_TRY(auto& changes, changes_of(options, to->layout));
        RESHARD_TRY(const auto read, need_bytes(in, in_bytes, "in"));
        RESHARD_TRY(const auto written, need_bytes(out, out_bytes, "out"));
        return Tiles{&from->layout, &to->layout, std::move(changes), read, written};
    }();
    if (!tiles) reshard::refuse(backend, tiles.error());
    return tiles;
}

Result<void> move_tiles(Backend& backend, const reshard_layout* source, const reshard_layout* target,
                        const reshard_move_options* options, const void* in, std::int64_t in_bytes, void* out,
                        std::int64_t out_bytes) {
    RESHARD_TRY(const auto& tiles, need_tiles(backend, {}, source, target, options, in, in_bytes, out, out_bytes));
    return redistribute(backend, *tiles.source, *tiles.target, tiles.in, tiles.out, tiles.options);
}

Result<void> done(Result<std::unique_ptr<Ticket>> run) {
    RESHARD_TRY(const auto& ticket, std::move(run));
    return ticket->wait();
}

Result<std::unique_ptr<reshard_ticket>> ticket_of(Handle& parent, Result<std::unique_ptr<Ticket>> run) {
    RESHARD_TRY(auto& ticket, std::move(run));
    return std::make_unique<reshard_ticket>(Ref<Handle>(&parent), std::move(ticket));
}

Result<std::vector<Problem>> problems_of(const reshard_layout* const* sources, const reshard_layout* const* targets,
                                         std::int64_t count) {
    RESHARD_TRY(const std::size_t arrays, need_count(count, 0, "count"));
    if (arrays > 0 && (sources == nullptr || targets == nullptr)) {
        return fail(Code::usage, "an array of layouts is needed, NULL was given");
    }
    std::vector<Problem> problems;
    for (std::size_t i = 0; i < arrays; ++i) {
        RESHARD_TRY(const auto* const source, need(sources[i]));
        RESHARD_TRY(const auto* const target, need(targets[i]));
        problems.push_back({source->layout, target->layout});
    }
    return problems;
}

Result<void> same_version() {
    if (std::string_view(reshard_version()) == RESHARD_VERSION) return {};
    return fail(Code::unsupported, std::string("this library is of version ") + RESHARD_VERSION +
                                       ", libreshard_c of version " + reshard_version());
}

}  // namespace reshard::c
