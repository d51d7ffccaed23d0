// Registered memory that now belongs to someone else, and processes forked meanwhile.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "conformance/mpi/children.hpp"
#include "conformance/mpi/registered/mapped.hpp"

namespace reshard::mpi {
namespace {

using namespace test;

// Freed, shrunk or remapped memory is detected, and the memory in its place is not touched.
TEST(RegisteredPages, LostAddressesAreFound) {
    const Traces before;
    for (const Asked way : {Asked::by_address, Asked::by_link, Asked::by_list}) {
        SCOPED_TRACE(static_cast<int>(way));
        const Mapped mapped(16 * page);
        fill(mapped.bytes(), 8);
        auto pages = registered(mapped.bytes().subspan(page, 12 * page)).value();
        const AddressRange range = pages->whole_pages();
        const FileView view{range, static_cast<std::uint64_t>(pages->offset_of(range.begin)), pages->name().inode, [&] {
                                const auto found = mappings_of(range).value();
                                EXPECT_EQ(found.size(), 1U);
                                return found.front().name;
                            }()};
        EXPECT_TRUE(shows(view, way));
        FileView shifted = view;
        shifted.offset += page;
        if (way != Asked::by_link) {
            EXPECT_FALSE(shows(shifted, way)) << "another part of the file";
        }
        // A foreign page in the middle.
        auto* const place = reinterpret_cast<std::byte*>(range.begin) + 4 * page;
        ASSERT_NE(mmap(place, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                  MAP_FAILED);
        *place = std::byte{77};
        EXPECT_FALSE(shows(view, way));
        EXPECT_FALSE(pages->is_intact());
        const auto ended = pages->end();
        ASSERT_FALSE(ended);
        EXPECT_NE(ended.error().message.find("4096 of 49152 bytes were freed or mapped anew"), std::string::npos)
            << ended.error().message;
        EXPECT_EQ(*place, std::byte{77});
        EXPECT_TRUE(pages->ended());
        for (std::size_t i = 0; i < 16 * page; ++i) {
            if (i < 5 * page || i >= 6 * page) {
                ASSERT_EQ(mapped.bytes()[i], value_at(i, 8));
            }
        }
    }
    EXPECT_EQ(Traces(), before);
}

TEST(RegisteredPages, AllThatWasFreedIsLost) {
    auto mapped = std::make_unique<Mapped>(16 * page);
    auto pages = registered(mapped->bytes()).value();
    mapped.reset();
    EXPECT_FALSE(pages->is_intact());
    EXPECT_FALSE(pages->end());
    EXPECT_TRUE(pages->end());
}

// A part of the mapping is advised or protected separately: it is still ours.
TEST(RegisteredPages, MappingsCutInPartsAreTheSame) {
    const Mapped mapped(16 * page);
    fill(mapped.bytes(), 9);
    auto pages = registered(mapped.bytes()).value();
    ASSERT_EQ(mprotect(mapped.bytes().data() + 4 * page, page, PROT_READ), 0);
    EXPECT_TRUE(pages->is_intact());
    ASSERT_EQ(mprotect(mapped.bytes().data() + 4 * page, page, PROT_READ | PROT_WRITE), 0);
    EXPECT_TRUE(pages->end());
    EXPECT_TRUE(holds(mapped.bytes(), 9));
}

// A child shares registered memory, keeps the contents after the parent has ended, and may end the registration for
// itself.
TEST(RegisteredPages, AForkShares) {
    const Mapped mapped(9 * mebi);
    fill(mapped.bytes(), 10);
    auto pages = registered(mapped.bytes().subspan(3)).value();
    test::Child child([&](const std::function<void()>& wait) -> std::string {
        if (!holds(mapped.bytes(), 10)) return "the child sees other contents";
        mapped.bytes()[5 * page] = std::byte{1};  // the parent sees this
        wait();
        mapped.bytes()[5 * page] = value_at(5 * page, 10);
        if (!holds(mapped.bytes(), 10)) return "what the parent ended is gone";
        if (const auto ended = pages->end(); !ended) return ended.error().message;
        return holds(mapped.bytes(), 10) ? "" : "contents are lost";
    });
    child.reached();
    EXPECT_EQ(mapped.bytes()[5 * page], std::byte{1});
    mapped.bytes()[5 * page] = value_at(5 * page, 10);
    ASSERT_TRUE(pages->end());
    fill(mapped.bytes(), 11);  // the child no longer sees this
    EXPECT_EQ(child.end(), "");
    EXPECT_TRUE(holds(mapped.bytes(), 11));
}

TEST(RegisteredPages, AChildMayEndItFirst) {
    const Mapped mapped(mebi);
    fill(mapped.bytes(), 12);
    auto pages = registered(mapped.bytes()).value();
    EXPECT_EQ(in_child([&]() -> std::string {
                  if (!pages->end()) return "not ended";
                  fill(mapped.bytes(), 13);
                  return "";
              }),
              "");
    EXPECT_TRUE(pages->is_intact());
    EXPECT_TRUE(holds(mapped.bytes(), 12));
    EXPECT_TRUE(pages->end());
    EXPECT_TRUE(holds(mapped.bytes(), 12));
}

TEST(RegisteredPages, AForkMayBeWithheld) {
    const Mapped mapped(mebi);
    fill(mapped.bytes(), 14);
    auto pages = registered(mapped.bytes(), OnFork::withhold).value();
    EXPECT_EQ(in_child([&]() -> std::string {
                  if (mappings_of(pages->whole_pages()).value().size() != 0) return "the child has them";
                  const auto ended = pages->end();
                  return ended ? "" : ended.error().message;
              }),
              "");
    EXPECT_TRUE(pages->end());
    EXPECT_TRUE(holds(mapped.bytes(), 14));
    EXPECT_EQ(in_child([&]() -> std::string { return holds(mapped.bytes(), 14) ? "" : "not a child's again"; }), "");
}

}  // namespace
}  // namespace reshard::mpi
