// Local search over orders under limits on memory: late acceptance (Burke and Bykov 2017).
#pragma once

#include "synth/program/dice.hpp"
#include "synth/program/lower_bound.hpp"
#include "synth/program/times.hpp"

namespace reshard::program {

/// An order, and its value.
struct Found {
    Order order;
    Value value;
};

/// Returns an order that is at least as good as `best`, after `rounds` changes or at the bound, whichever is first. A
/// change swaps an activity with the one that it waits for, pulls it forward together with its inputs, or pushes it
/// back together with its users. It also moves groups that share memory. Counts the rounds down.
/// pre: the order of `best` fits.
[[nodiscard]] Found improve(const Activities& program, const Paths& paths, Found best, Index bound, Index& rounds);

}  // namespace reshard::program
