#include "src/schedule/owned_boxes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard {

namespace {

constexpr Index product_max = Index{1} << 56;  // the checker counts in 63 bits

std::string sides(const Box& box) {
    std::string text;
    for (const Interval& side : box) text += fmt::format("{}({} {})", text.empty() ? "" : " ", side.begin, side.end);
    return text;
}

std::string print(const char* what, const std::vector<Box>& boxes) {
    std::string text = fmt::format("({}", what);
    for (const Box& box : boxes) text += fmt::format(" ({})", sides(box));
    return text + ")";
}

std::string print(const char* what, const std::vector<Transfer>& transfers) {
    std::string text = fmt::format("({}", what);
    for (const Transfer& one : transfers)
        text += fmt::format(" ({}{}{})", one.peer, one.box.empty() ? "" : " ", sides(one.box));
    return text + ")";
}

}  // namespace

Result<void> check_certified_ranks(Index ranks) {
    if (ranks <= certified_members_max) return {};
    return fail(Code::unsupported,
                fmt::format("{} ranks exchange boxes; the checker judges at most {}", ranks, certified_members_max));
}

Result<std::string> certificate(const OwnedBoxes& boxes) {
    RESHARD_CHECK(check_certified_ranks(std::ssize(boxes.ranks)));
    Index product = 1;
    std::string text = "(boxes (shape";
    for (const Index extent : boxes.shape) {
        product = saturating_multiply(product, std::max<Index>(extent, 1));
        text += fmt::format(" {}", extent);
    }
    if (product >= product_max)
        return fail(Code::unsupported, "the array has more elements than the checker can count (2^56)");
    text += fmt::format("){}{} (ranks", boxes.copies ? " copies" : "", boxes.partial ? " partial" : "");
    for (const MemberBoxes& member : boxes.ranks)
        text += fmt::format(" (rank {} {} {} {})", print("owns", member.owns), print("wants", member.wants),
                            print("sends", member.sends), print("receives", member.receives));
    return text + "))";
}

}  // namespace reshard
