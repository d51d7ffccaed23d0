// Random meshes, layouts, pairs and walks that are valid by construction, and twins that break exactly one invariant.
#pragma once

// rapidcheck's own printers expect gtest to come first.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "reshard/plan.hpp"
#include "support/oracle.hpp"

namespace reshard::test {

/// Every kind but view and cast, which change the shape or the element type.
inline constexpr std::span kinds_of_one_shape = std::span(all_step_kinds).first(all_step_kinds.size() - 2);

/// The most device-elements (devices times largest tile) of any generated layout.
inline constexpr Index device_elements_max = Index{1} << 16;

/// The kinds of layouts that a generated pair may contain.
struct Scope {
    bool uneven = true;     ///< extents that shard counts do not divide
    bool sums = true;       ///< unreduced axes
    bool sub_axes = true;   ///< parts of axes, cut equally or differently on the two sides
    Index devices_max = 0;  ///< 0: usually up to 64, sometimes up to 6^4
};

/// Two layouts of one array on one mesh.
struct Pair {
    Spec source;
    Spec target;
};

/// The command line that plans the pair, to repeat a failing test by hand.
[[nodiscard]] std::string repeat_line(const Pair& pair);
void showValue(const Pair& pair, std::ostream& out);
void showValue(const Spec& spec, std::ostream& out);

/// Uniform in [from, to), independent of RapidCheck's size. Shrinks towards `from`.
template <class T>
[[nodiscard]] rc::Gen<T> between(T from, T to) {
    return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(from, to));
}

[[nodiscard]] bool divides(const Spec& spec);
[[nodiscard]] bool divides(const Pair& pair);
[[nodiscard]] Index tile_size(const Spec& spec);  ///< elements of the largest tile, without enumerating devices

[[nodiscard]] rc::Gen<std::vector<Axis>> meshes(Index devices_max);
[[nodiscard]] rc::Gen<Pair> pairs(Scope scope = {});
[[nodiscard]] rc::Gen<Spec> layouts(Scope scope = {});

/// A pair whose two sides make one step of `kind` by the definition of that kind (sizes divide).
[[nodiscard]] rc::Gen<Pair> typed_pairs(StepKind kind);

/// A plan: up to five steps of any kind, each typed by construction, from a layout whose sizes divide.
struct Walk {
    Spec source;
    std::vector<std::pair<StepKind, Spec>> steps;
};
[[nodiscard]] Plan plan_of(const Walk& walk);
void showValue(const Walk& walk, std::ostream& out);
[[nodiscard]] rc::Gen<Walk> walks();

/// A value that breaks one invariant, with the reason that an error must give.
template <class T>
struct Twin {
    std::string invariant;  ///< the broken invariant, in words
    T value;
    Code code;
    std::string fragment;  ///< what the message must contain
};
template <class T>
void showValue(const Twin<T>& twin, std::ostream& out) {
    out << "twin that breaks: " << twin.invariant;
}

[[nodiscard]] rc::Gen<Twin<Mesh>> broken_meshes();
[[nodiscard]] rc::Gen<Twin<Layout>> broken_layouts();
[[nodiscard]] rc::Gen<Twin<Plan>> broken_plans();

}  // namespace reshard::test
