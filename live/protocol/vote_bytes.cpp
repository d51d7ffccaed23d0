#include "live/protocol/vote_bytes.hpp"

#include <cstring>
#include <type_traits>

namespace reshard::live {
namespace {

// The fields of a vote that have a fixed size.
struct Fixed {
    std::int64_t question = 0;
    std::int64_t answer = 0;
    std::int64_t version = 0;
    std::uint64_t content = 0;
    Standing standing;
};
static_assert(std::is_trivially_copyable_v<Fixed> && sizeof(Fixed) == 72);

}  // namespace

std::string bytes_of(const Vote& vote) {
    const Fixed fixed{static_cast<std::int64_t>(vote.question), static_cast<std::int64_t>(vote.answer), vote.version,
                      vote.content, vote.standing};
    return std::string(reinterpret_cast<const char*>(&fixed), sizeof fixed) + vote.reason;
}

std::optional<Vote> vote_of(std::string_view bytes) {
    Fixed fixed;
    if (bytes.size() < sizeof fixed) return std::nullopt;
    std::memcpy(&fixed, bytes.data(), sizeof fixed);
    const bool known = fixed.question >= 0 && fixed.question <= static_cast<std::int64_t>(Question::activate) &&
                       fixed.answer >= 0 && fixed.answer <= static_cast<std::int64_t>(Answer::failed);
    if (!known) return std::nullopt;
    return Vote{static_cast<Question>(fixed.question),
                static_cast<Answer>(fixed.answer),
                fixed.version,
                fixed.content,
                fixed.standing,
                std::string(bytes.substr(sizeof fixed))};
}

}  // namespace reshard::live
