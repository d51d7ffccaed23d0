// Owned and wanted boxes before the checker that is extracted from the proofs: of halos and of boxes that ranks name,
// and damaged ones. An oracle that counts element by element must agree with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <set>

#include "conformance/boxes/drawn.hpp"
#include "conformance/halos/drawn.hpp"
#include "differential/checker.hpp"
#include "reshard/text.hpp"
#include "src/boxes/routes.hpp"
#include "src/schedule/wanted.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

using conformance::numbers_in;

class CertifiedBoxes : public ::testing::Test {
protected:
    void SetUp() override {
        if (!Checker::built()) GTEST_SKIP() << "this build has no checker: it needs coqc and ocamlopt";
    }
};

Index elements_of(const std::vector<Index>& shape) {
    return std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
}

// The most elements that a rank receives; nothing if some element has a wrong number of owners, or if a wanted cell
// does not come exactly once from an owner.
std::optional<Index> counted(const OwnedBoxes& boxes) {
    std::map<Index, std::vector<std::pair<std::size_t, Box>>> owners;  // by the number of the element
    for (std::size_t rank = 0; rank < boxes.ranks.size(); ++rank)
        for (const Box& box : boxes.ranks[rank].owns)
            for (const Index number : numbers_in(boxes.shape, box)) owners[number].emplace_back(rank, box);
    for (const auto& [number, some] : owners)
        if (some.size() > 1 && (!boxes.copies || std::ranges::any_of(some, [&](const auto& one) {
                return one.second != some.front().second;
            })))
            return std::nullopt;
    if (!boxes.partial && std::ssize(owners) != elements_of(boxes.shape)) return std::nullopt;
    Index most = 0;
    for (std::size_t rank = 0; rank < boxes.ranks.size(); ++rank) {
        const MemberBoxes& member = boxes.ranks[rank];
        std::map<Index, int> there;
        std::set<Index> wanted;
        Index received = 0;
        for (const Box& box : member.owns)
            for (const Index number : numbers_in(boxes.shape, box)) ++there[number];
        for (const Transfer& one : member.receives)
            for (const Index number : numbers_in(boxes.shape, one.box)) {
                ++received;
                if (++there[number] > 1) return std::nullopt;
                const auto& some = owners[number];
                if (std::ranges::none_of(some, [&](const auto& owner) {
                        return static_cast<Index>(owner.first) == one.peer && one.peer != static_cast<Index>(rank);
                    }))
                    return std::nullopt;
            }
        for (const Box& cells : member.wants) {
            std::vector<Index> ends;  // the cells are counted in an array that reaches as far as they do
            for (const Interval& side : cells) ends.push_back(side.end);
            for (Index cell : numbers_in(ends, cells)) {
                Index element = 0, factor = 1;
                for (std::size_t k = ends.size(); k-- > 0; cell /= ends[k]) {
                    element += factor * (cell % ends[k] % boxes.shape[k]);
                    factor *= boxes.shape[k];
                }
                wanted.insert(element);
                if (there[element] != 1) return std::nullopt;
            }
        }
        for (const Transfer& one : member.receives)
            for (const Index number : numbers_in(boxes.shape, one.box))
                if (!wanted.contains(number)) return std::nullopt;
        for (std::size_t other = 0; other < boxes.ranks.size(); ++other) {
            const auto with = [](const std::vector<Transfer>& all, std::size_t peer) {
                std::vector<Box> some;
                for (const Transfer& one : all)
                    if (one.peer == static_cast<Index>(peer)) some.push_back(one.box);
                return some;
            };
            if (with(member.receives, other) != with(boxes.ranks[other].sends, rank)) return std::nullopt;
        }
        most = std::max(most, received);
    }
    return most;
}

OwnedBoxes draw_halo(Random& random) {
    const conformance::DrawnLayout drawn = conformance::draw_layout(random, 1 + below(random, 8));
    const Mesh mesh = parse_mesh(conformance::mesh_text(drawn)).value();
    const HaloLayout wanted = parse_halo_layout(mesh, conformance::text_of(drawn, "u8")).value();
    Layout owners = wanted.owned;
    if (below(random, 3) == 0)
        owners = parse_layout(mesh, conformance::text_of(conformance::draw_source(random, drawn), "u8")).value();
    return owned_boxes(owners, wanted).value();
}

OwnedBoxes draw_boxes(Random& random) {
    return owned_boxes(conformance::draw_boxes(random, 1 + below(random, 6)).table);
}

// Moves, drops or doubles one box, or sends it from elsewhere. False if the rank that it drew has none.
bool damage(Random& random, OwnedBoxes& boxes) {
    MemberBoxes& member = boxes.ranks[static_cast<std::size_t>(below(random, std::ssize(boxes.ranks)))];
    const bool owned = below(random, 4) == 0;
    if (owned ? member.owns.empty() : member.receives.empty()) return false;
    if (owned) {
        Box& box = member.owns[static_cast<std::size_t>(below(random, std::ssize(member.owns)))];
        if (box.empty()) return false;
        box[static_cast<std::size_t>(below(random, std::ssize(box)))].begin += 1;
        if (count(box) == 0) std::erase(member.owns, Box(box));
        return true;
    }
    const auto at = member.receives.begin() + below(random, std::ssize(member.receives));
    switch (below(random, 4)) {
        case 0:
            member.receives.erase(at);
            return true;
        case 1:
            member.receives.push_back(Transfer(*at));
            return true;
        case 2:
            at->peer = (at->peer + 1) % std::ssize(boxes.ranks);
            return true;
        default: {
            if (at->box.empty() || at->box.front().begin == 0) return false;
            --at->box.front().begin;
            --at->box.front().end;
            return true;
        }
    }
}

void compare(const std::string& name, int cases, bool damaged, OwnedBoxes (*draw)(Random&)) {
    Random random = Random(damaged ? 20261127 : 20261126);
    Checker checker(name + (damaged ? "_damaged" : ""));
    std::vector<std::pair<std::string, std::optional<Index>>> asked;
    while (std::ssize(asked) < cases) {
        OwnedBoxes boxes = draw(random);
        if (damaged && !damage(random, boxes)) continue;
        std::string line = certificate(boxes).value();
        checker.ask(line);
        asked.emplace_back(std::move(line), counted(boxes));
    }
    const auto answers = checker.answers();
    ASSERT_EQ(answers.size(), asked.size());
    int accepted = 0;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        const auto& [line, most] = asked[i];
        ASSERT_EQ(answers[i].accepted, most.has_value()) << line << "\n" << answers[i].text;
        if (!most) continue;
        ++accepted;
        ASSERT_EQ(answers[i].received, *most) << line;
        ASSERT_TRUE(answers[i].optimal);
    }
    EXPECT_TRUE(damaged ? accepted < cases / 2 : accepted == cases) << accepted;
    std::cout << "  " << cases << " exchanges, " << accepted << " accepted\n";
}

TEST_F(CertifiedBoxes, OfHalosAreServedOnce) { compare("halos", long_run() ? 10000 : 300, false, draw_halo); }
TEST_F(CertifiedBoxes, ThatRanksNameAreServedOnce) { compare("boxes", long_run() ? 10000 : 200, false, draw_boxes); }
TEST_F(CertifiedBoxes, OfDamagedHalosAreRefused) { compare("halos", long_run() ? 10000 : 300, true, draw_halo); }
TEST_F(CertifiedBoxes, ThatAreDamagedAreRefused) { compare("boxes", long_run() ? 10000 : 200, true, draw_boxes); }

}  // namespace
}  // namespace reshard::test
