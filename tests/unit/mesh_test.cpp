#include "reshard/planner/atoms.hpp"

#include <gtest/gtest.h>

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 12}, {"z", 3}};

TEST(MeshUnit, DevicesAreCountedAndTheEmptyMeshHasOne) {
    EXPECT_EQ(device_count(mesh), 72);
    EXPECT_EQ(device_count(Mesh{}), 1);
    EXPECT_TRUE(validate(Mesh{}).has_value());
}

TEST(MeshUnit, TheLastAxisTurnsFastest) {
    EXPECT_EQ(*atom_of(mesh, {"z", 1, 0}), (Atom{3, 1}));
    EXPECT_EQ(*atom_of(mesh, {"y", 1, 0}), (Atom{12, 3}));
    EXPECT_EQ(*atom_of(mesh, {"x", 1, 0}), (Atom{2, 36}));
    EXPECT_EQ(coordinate({12, 3}, 71), 11);
}

TEST(MeshUnit, ASubAxisIsTheMiddleOfItsAxis) {
    EXPECT_EQ(*atom_of(mesh, {"y", 2, 3}), (Atom{3, 6}));
    EXPECT_EQ(*atom_of(mesh, {"y", 1, 2}), (Atom{2, 18}));
    EXPECT_EQ(*atom_of(mesh, {"y", 6, 2}), (Atom{2, 3}));
}

TEST(MeshUnit, ASubAxisThatDoesNotDivideIsRefused) {
    for (const SubAxis& part : {SubAxis{"y", 5, 2}, SubAxis{"y", 2, 5}, SubAxis{"q", 1, 0}, SubAxis{"y", 1, 24}}) {
        const auto atom = atom_of(mesh, part);
        ASSERT_FALSE(atom.has_value()) << part.axis << part.before << part.size;
        EXPECT_EQ(atom.error().code, Code::layout);
    }
}

TEST(MeshUnit, AnAtomFindsItsNames) {
    EXPECT_EQ(names_of(mesh, {12, 3}), (std::vector<SubAxis>{{"y", 1, 0}})) << "size 0 stands for the whole axis";
    EXPECT_EQ(names_of(mesh, {3, 6}), (std::vector<SubAxis>{{"y", 2, 3}}));
    const auto spanning = names_of(mesh, {36, 1});  // y and z together
    ASSERT_TRUE(spanning.has_value());
    EXPECT_EQ(spanning->size(), 2U);
    EXPECT_EQ(spanning->at(0).axis, "y");
    EXPECT_EQ(spanning->at(1).axis, "z");
}

TEST(MeshUnit, CanonicalDropsOnesAndJoinsNeighbours) {
    EXPECT_EQ(canonical({{2, 36}, {1, 5}, {12, 3}, {3, 1}}), (AtomList{{72, 1}}));
    EXPECT_EQ(canonical({{3, 1}, {12, 3}}), (AtomList{{3, 1}, {12, 3}}));
    EXPECT_EQ(canonical({}), AtomList{});
}

TEST(MeshUnit, ASetHasOneOrder) {
    EXPECT_EQ(as_set({{3, 1}, {12, 3}}), (AtomList{{36, 1}}));
    EXPECT_EQ(as_set({{3, 1}, {2, 36}}), (AtomList{{2, 36}, {3, 1}}));
}

TEST(MeshUnit, ValuesAreMixedRadixTheFirstAtomMostMajor) {
    const AtomList list{{3, 1}, {2, 36}};
    EXPECT_EQ(combinations(list), 6);
    EXPECT_EQ(value_of(list, 36 + 2), 2 * 2 + 1);
    EXPECT_EQ(combinations(AtomList{}), 1);
    EXPECT_EQ(value_of(AtomList{}, 17), 0);
}

TEST(MeshUnit, OverlappingDigitsAreNotDisjoint) {
    EXPECT_TRUE(disjoint(AtomList{{2, 1}, {3, 2}, {2, 6}}));
    EXPECT_FALSE(disjoint(AtomList{{6, 1}, {3, 2}}));
    EXPECT_FALSE(disjoint(AtomList{{2, 3}, {3, 2}})) << "2 of 6 and 3 of 6 cut at places that share no refinement";
}

TEST(MeshUnit, WhatFollowsAPrefixSplitsAtoms) {
    EXPECT_EQ(after_prefix({{12, 1}}, {{4, 3}}), (AtomList{{3, 1}}));
    EXPECT_EQ(after_prefix({{12, 1}}, {}), (AtomList{{12, 1}}));
    EXPECT_EQ(after_prefix({{12, 1}}, {{12, 1}}), AtomList{});
    EXPECT_EQ(after_prefix({{12, 1}}, {{3, 1}}), std::nullopt);
    EXPECT_EQ(after_prefix({{4, 3}}, {{12, 1}}), std::nullopt);
}

TEST(MeshUnit, TheComplementIsTheOtherDigits) {
    EXPECT_EQ(complement(AtomList{{12, 3}}, 72), (AtomList{{2, 36}, {3, 1}}));
    EXPECT_EQ(complement(AtomList{}, 72), (AtomList{{72, 1}}));
    EXPECT_EQ(complement(AtomList{{72, 1}}, 72), AtomList{});
}

}  // namespace
}  // namespace reshard
