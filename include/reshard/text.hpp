// Reads and writes text in JAX's notation: f32[8192@(x,y),4096,128@z:(2)2]{U:w}. Every parser reports the first wrong
// place.
#pragma once

#include "reshard/plan.hpp"

namespace reshard {

/// Parses mesh := [axis {"," axis}] ["[" range {"," range} "]"]; axis := name "=" size; range := device ["-" device].
/// Examples: x=2,y=3; with a list of devices x=2,y=3[0,2,4,1,3,5]. Empty text is one device.
[[nodiscard]] Result<Mesh> parse_mesh(std::string_view text);
/// The text that parse_mesh reads.
[[nodiscard]] std::string format(const Mesh& mesh);

/// Parses layout := dtype "[" [dim {"," dim}] "]" ["{" unreduced ":" axes "}"];
/// dim := cut_dim | "(" cut_dim {"," cut_dim} ")@" axes ["[" unit {"," unit} "]"] (dimensions as one: the axes deal out
///      each flattened tile, in equal parts or in units);
/// cut_dim := extent ["@" axes [cut]];
/// unreduced := "U" (a sum) | "max" | "min" | "prod" | "avg" ["/" n];
/// cut := "[" share {"," share} "]" (indices of each shard) | "/" block (block-cyclic, indices of a block)
///      | "[balanced]" (as numpy.array_split)
///      | "[" end ":" shard {"," end ":" shard} "]" (pieces: the end of each, and its owner);
/// axes := axis | "(" [axis {"," axis}] ")"; axis := name [":(" before ")" size] | "?" size ":" stride. Major to minor.
/// An axis with "?" is a digit of the device number that has no name. A search may leave one on the way.
[[nodiscard]] Result<Layout> parse_layout(const Mesh& mesh, std::string_view text);
/// The text that parse_layout reads.
[[nodiscard]] std::string format(const Layout& layout);

/// Says why not all tiles are equal blocks in order. It names the first dimension at fault and the reason: its shards
/// do not divide its extent, or it is cut block-cyclically, into stated shares or at stated indices.
/// Empty if all dimensions divide.
[[nodiscard]] std::string why_uneven(const Layout& layout);

/// Parses plan := "mesh " mesh NL "source " layout NL ["network " count {"," count} NL] {kind " " layout NL}
/// "target " layout NL. If a layout is on another mesh than the layout before it, a line "mesh " mesh NL precedes it.
[[nodiscard]] Result<Plan> parse_plan(std::string_view text);
/// The text that parse_plan reads.
[[nodiscard]] std::string format(const Plan& plan);

/// Writes a byte count for people: 0, 512 B, 96.0 MiB.
[[nodiscard]] std::string format_bytes(Index bytes);
/// Parses a size in bytes: 1024, 96MiB, 1.5GiB, 2GB. Errors: syntax, overflow.
[[nodiscard]] Result<Index> parse_bytes(std::string_view text);

}  // namespace reshard
