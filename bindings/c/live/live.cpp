// Publishers and subscribers of the C interface.
#include "reshard/c/live.h"

#include <optional>

#include "bindings/c/answer.hpp"
#include "reshard/live/publish.hpp"
#include "reshard/live/subscribe.hpp"

struct reshard_live_group final : reshard::c::HandleOf<reshard_live_group> {
    static constexpr const char* name = "a group";
    explicit reshard_live_group(std::unique_ptr<reshard::live::Group> of) : group(std::move(of)) {}
    const std::unique_ptr<reshard::live::Group> group;
};

struct reshard_publisher final : reshard::c::HandleOf<reshard_publisher> {
    static constexpr const char* name = "a publisher";
    reshard_publisher(reshard_live_group* of, reshard::live::Publisher made, std::vector<std::size_t> bytes)
        : group(of), out(std::move(made)), endpoint(out.endpoint()), tile_bytes(std::move(bytes)) {}
    const reshard::c::Ref<reshard_live_group> group;  // goes last
    reshard::live::Publisher out;
    const std::string endpoint;
    const std::vector<std::size_t> tile_bytes;  // of each tensor, as this rank holds it
};

struct reshard_subscriber final : reshard::c::HandleOf<reshard_subscriber> {
    static constexpr const char* name = "a subscriber";
    reshard_subscriber(reshard_live_group* of, reshard::live::Subscriber made) : group(of), into(std::move(made)) {}
    reshard::c::Ref<reshard_live_group> group;   // goes last
    reshard::c::Ref<reshard_live_group> before;  // `into` may still use it if a reconnect has failed
    reshard::live::Subscriber into;
};

namespace reshard::c {
namespace {

using std::chrono::milliseconds;
constexpr std::int64_t longest_ms = std::int64_t{10} * 365 * 86400 * 1000;  // 10 years
constexpr std::size_t text_bytes = 1024;                                    // of a broadcast

Result<milliseconds> need_time(std::int64_t time, const char* name) {
    if (time < 0) return fail(Code::usage, std::string(name) + " is " + std::to_string(time) + " ms; wanted 0 or more");
    return milliseconds(std::min(time, longest_ms));
}

// Arguments of a collective call. If they are wrong, the other ranks fail at once.
template <class T>
Result<T> or_report(live::Group& group, milliseconds limit, Result<T> arguments) {
    if (!arguments) static_cast<void>(live::report_failure(group, arguments.error().message, limit));
    return arguments;
}

struct Asked {
    std::string endpoint;
    std::vector<live::PublishedTensor> tensors;
    live::PublishOptions publish;
    live::SubscribeOptions subscribe;
};

Result<live::PublishedTensor> tensor_of(const reshard_live_tensor& given) {
    RESHARD_CHECK(known_size<reshard_live_tensor>(given.size, "reshard_live_tensor"));
    RESHARD_TRY(const auto& name, need_text(given.name, "name"));
    RESHARD_TRY(const auto* const layout, need(given.layout));
    live::PublishedTensor tensor{std::string(name), layout->layout, {}, {}};
    RESHARD_ASSIGN(tensor.tile, need_bytes(given.tile, given.tile == nullptr ? 0 : given.tile_bytes, "tile"));
    if (given.held != nullptr) {
        RESHARD_ASSIGN(tensor.held, parse_dtype(given.held));
    }
    return tensor;
}

Result<void> read_options(const reshard_live_options* given, Asked& asked) {
    RESHARD_TRY(const auto& options,
                structure<reshard_live_options>(given, RESHARD_LIVE_OPTIONS_INITIALIZER, "reshard_live_options"));
    RESHARD_ASSIGN(asked.publish.lease, need_time(options.lease_ms, "lease_ms"));
    asked.publish.check_bytes = options.check_bytes != 0;
    asked.publish.bytes_per_second = options.bytes_per_second;
    asked.publish.memory_bytes = options.memory_bytes;
    asked.subscribe.lease = asked.publish.lease;
    RESHARD_ASSIGN(asked.subscribe.connect_limit, need_time(options.connect_ms, "connect_ms"));
    asked.subscribe.in_place = options.in_place != 0;
    if (options.progress != nullptr)
        asked.subscribe.progress = [call = options.progress, context = options.context](Index received, Index bytes) {
            call(received, bytes, context);
        };
    if (options.arrived != nullptr)
        asked.subscribe.arrived = [call = options.arrived, context = options.context](std::size_t tensor,
                                                                                      std::span<const std::byte> tile) {
            call(static_cast<std::int64_t>(tensor), tile.data(), std::ssize(tile), context);
        };
    return {};
}

Result<Asked> asked_of(const Result<void>& place, const char* endpoint, const reshard_live_tensor* tensors,
                       std::int64_t count, const reshard_live_options* options) {
    RESHARD_CHECK(place);
    Asked asked;
    RESHARD_TRY(const auto& where, need_text(endpoint, "endpoint"));
    asked.endpoint = where;
    RESHARD_TRY(const std::size_t given, need_count(count, 0, "count"));
    if (given > 0 && tensors == nullptr) return fail(Code::usage, "an array of tensors is needed, NULL was given");
    for (std::size_t i = 0; i < given; ++i) {
        RESHARD_TRY(auto& tensor, tensor_of(tensors[i]));
        asked.tensors.push_back(std::move(tensor));
    }
    RESHARD_CHECK(read_options(options, asked));
    return asked;
}

constexpr milliseconds report_limit{
    90000};  // of a rank whose options may be wrong: the default lease and connect limit

Result<std::vector<std::span<const std::byte>>> tiles_of(const reshard_publisher& publisher, const void* const* tiles,
                                                         std::int64_t count) {
    if (count != std::ssize(publisher.tile_bytes))
        return fail(Code::mismatch, std::to_string(count) + " tiles; wanted " +
                                        std::to_string(publisher.tile_bytes.size()) + ", one for each tensor");
    std::vector<std::span<const std::byte>> all;
    for (std::size_t i = 0; i < publisher.tile_bytes.size(); ++i) {
        RESHARD_TRY(const auto& tile,
                    need_bytes(tiles[i], static_cast<std::int64_t>(publisher.tile_bytes[i]), "tiles"));
        all.push_back(tile);
    }
    return all;
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_live_alone(reshard_live_group** group, reshard_error** error) {
    return make(group, error, []() -> Result<std::unique_ptr<live::Group>> {
        RESHARD_CHECK(same_version());
        return live::alone();
    });
}

int reshard_live_join(const char* endpoint, int64_t rank, int64_t size, int64_t timeout_ms, reshard_live_group** group,
                      reshard_error** error) {
    return make(group, error, [&]() -> Result<std::unique_ptr<live::Group>> {
        RESHARD_CHECK(same_version());
        RESHARD_TRY(const auto& where, need_text(endpoint, "endpoint"));
        RESHARD_TRY(const milliseconds limit, need_time(timeout_ms, "timeout_ms"));
        return live::join_group(std::string(where), rank, size, limit);
    });
}

int reshard_live_join_through(reshard_live_broadcast broadcast, void* context, int64_t rank, int64_t size,
                              int64_t timeout_ms, reshard_live_group** group, reshard_error** error) {
    return make(group, error, [&]() -> Result<std::unique_ptr<live::Group>> {
        RESHARD_CHECK(same_version());
        if (broadcast == nullptr) return fail(Code::usage, "a function `broadcast` is needed, NULL was given");
        RESHARD_TRY(const milliseconds limit, need_time(timeout_ms, "timeout_ms"));
        const auto pass_on = [&](const std::string& text) -> Result<std::string> {
            std::string all = text;
            all.resize(text_bytes);
            if (const int code = broadcast(all.data(), std::ssize(all), context); code != 0)
                return fail(Code::backend, "the broadcast failed with " + std::to_string(code));
            return std::string(all.c_str());
        };
        return live::join_group(std::function(pass_on), rank, size, limit);
    });
}

int64_t reshard_live_group_rank(const reshard_live_group* group) {
    return group == nullptr ? -1 : group->group->rank();
}
int64_t reshard_live_group_size(const reshard_live_group* group) {
    return group == nullptr ? -1 : group->group->size();
}

int reshard_live_publish(reshard_live_group* group, const char* endpoint, const reshard_live_tensor* tensors,
                         int64_t count, const reshard_live_options* options, reshard_publisher** publisher,
                         reshard_error** error) {
    return make_together(
        publisher, error, [&](const Result<void>& place) -> Result<std::unique_ptr<reshard_publisher>> {
            RESHARD_CHECK(same_version());
            RESHARD_TRY(auto* const job, need(group));
            RESHARD_TRY(const auto& asked,
                        or_report(*job->group, report_limit, asked_of(place, endpoint, tensors, count, options)));
            RESHARD_TRY(auto& made, live::Publisher::open(*job->group, asked.endpoint, asked.tensors, asked.publish));
            std::vector<std::size_t> bytes;
            for (const live::PublishedTensor& one : asked.tensors)
                bytes.push_back(tile_count(one.layout, job->group->rank()) *
                                static_cast<std::size_t>(size_of(one.held.value_or(one.layout.dtype))));
            return std::make_unique<reshard_publisher>(job, std::move(made), std::move(bytes));
        });
}

int reshard_publisher_commit(reshard_publisher* publisher, int64_t version, const void* const* tiles, int64_t count,
                             reshard_error** error) {
    return answer(publisher, error, [&](auto& own) -> Result<void> {
        if (tiles == nullptr) return own.out.commit(version);
        RESHARD_TRY(const auto& all, or_report(*own.group->group, report_limit, tiles_of(own, tiles, count)));
        return own.out.commit(version, all);
    });
}

const char* reshard_publisher_endpoint(const reshard_publisher* publisher) {
    return publisher == nullptr ? nullptr : publisher->endpoint.c_str();
}

int64_t reshard_publisher_newest(const reshard_publisher* publisher) {
    return publisher == nullptr ? -1 : publisher->out.newest();
}

int64_t reshard_publisher_subscribers(const reshard_publisher* publisher) {
    return publisher == nullptr ? -1 : static_cast<int64_t>(publisher->out.subscriber_count());
}

int reshard_live_subscribe(reshard_live_group* group, const char* endpoint, const reshard_live_tensor* tensors,
                           int64_t count, const reshard_live_options* options, reshard_subscriber** subscriber,
                           reshard_error** error) {
    return make_together(
        subscriber, error, [&](const Result<void>& place) -> Result<std::unique_ptr<reshard_subscriber>> {
            RESHARD_CHECK(same_version());
            RESHARD_TRY(auto* const job, need(group));
            RESHARD_TRY(const auto& asked,
                        or_report(*job->group, report_limit, asked_of(place, endpoint, tensors, count, options)));
            std::vector<live::WantedTensor> wanted;
            for (const live::PublishedTensor& one : asked.tensors) wanted.push_back({one.name, one.layout});
            RESHARD_TRY(auto& made, live::Subscriber::connect(*job->group, asked.endpoint, wanted, asked.subscribe));
            return std::make_unique<reshard_subscriber>(job, std::move(made));
        });
}

int reshard_subscriber_update(reshard_subscriber* subscriber, int64_t timeout_ms, int64_t* version,
                              reshard_error** error) {
    if (version != nullptr) *version = 0;
    return answer(subscriber, error, [&](auto& own) -> Result<void> {
        RESHARD_TRY(const milliseconds limit, need_time(timeout_ms == -1 ? longest_ms : timeout_ms, "timeout_ms"));
        RESHARD_TRY(const Index taken, own.into.update(limit));
        if (version != nullptr) *version = taken;
        return {};
    });
}

int reshard_subscriber_poll(reshard_subscriber* subscriber, int64_t* version, reshard_error** error) {
    if (version != nullptr) *version = 0;
    return answer(subscriber, error, [&](auto& own) -> Result<void> {
        RESHARD_TRY(const auto& taken, own.into.poll());
        if (version != nullptr) *version = taken.value_or(0);
        return {};
    });
}

int64_t reshard_subscriber_version(const reshard_subscriber* subscriber) {
    return subscriber == nullptr ? -1 : subscriber->into.version();
}

int reshard_subscriber_tile(const reshard_subscriber* subscriber, int64_t tensor, const void** tile, int64_t* bytes,
                            reshard_error** error) {
    return answer(subscriber, error, [&](auto& own) -> Result<void> {
        if (tile == nullptr) return fail(Code::usage, "there is no place for a tile: NULL");
        *tile = nullptr;
        RESHARD_TRY(const std::size_t number, need_count(tensor, 0, "tensor"));
        RESHARD_TRY(const auto& found, own.into.tile(number));
        *tile = found.data();
        if (bytes != nullptr) *bytes = std::ssize(found);
        return {};
    });
}

int reshard_subscriber_reconnect(reshard_subscriber* subscriber, reshard_live_group* group, reshard_error** error) {
    return answer(subscriber, error, [&](auto& own) -> Result<void> {
        RESHARD_TRY(auto* const job, need(group));
        own.before = std::exchange(own.group, Ref<reshard_live_group>(job));
        return own.into.reconnect(*job->group);
    });
}

int reshard_subscriber_close(reshard_subscriber* subscriber, reshard_error** error) {
    return answer(subscriber, error, [&](auto& own) { own.into.close(); });
}

}  // extern "C"
