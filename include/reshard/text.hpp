// Text in JAX's notation, both ways: f32[8192@(x,y),4096,128@z:(2)2]{U:w}. Every parser reports the first wrong place.
#pragma once

#include "reshard/plan.hpp"

namespace reshard {

/// mesh := [axis {"," axis}] ["[" range {"," range} "]"]; axis := name "=" size; range := device ["-" device].
/// Example: x=2,y=3, or x=2,y=3[0,2,4,1,3,5] over other devices or in another order. Empty text is one device.
[[nodiscard]] Result<Mesh> parse_mesh(std::string_view text);
/// The text that parse_mesh reads.
[[nodiscard]] std::string format(const Mesh& mesh);

/// layout := dtype "[" [dim {"," dim}] "]" ["{" unreduced ":" axes "}"]; dim := extent ["@" axes [cut]];
/// unreduced := "U" (a sum) | "max" | "min" | "prod" | "avg" ["/" n];
/// cut := "[" share {"," share} "]" (indices of each shard) | "/" block (block-cyclic, blocks of so many indices)
///      | "[" end ":" shard {"," end ":" shard} "]" (pieces: up to which index, whose);
/// axes := axis | "(" [axis {"," axis}] ")"; axis := name [":(" before ")" size] | "?" size ":" stride. Major to minor.
/// The last is a digit of the device number that no axis has, as a search may leave it on the way.
[[nodiscard]] Result<Layout> parse_layout(const Mesh& mesh, std::string_view text);
/// The text that parse_layout reads.
[[nodiscard]] std::string format(const Layout& layout);

/// Why not all tiles are equal blocks in order, of the first dimension that is cut otherwise: its shards do not divide
/// its extent, or it is cut block-cyclically, into stated shares or at stated indices. Empty where all dimensions
/// divide.
[[nodiscard]] std::string why_uneven(const Layout& layout);

/// plan := "mesh " mesh NL "source " layout NL ["network " count {"," count} NL] {kind " " layout NL} "target " layout
/// NL. Another line "mesh " mesh NL stands before a layout on another mesh than the layout before it.
[[nodiscard]] Result<Plan> parse_plan(std::string_view text);
/// The text that parse_plan reads.
[[nodiscard]] std::string format(const Plan& plan);

/// A byte count for people: 0, 512 B, 96.0 MiB.
[[nodiscard]] std::string format_bytes(Index bytes);
/// A size in bytes: 1024, 96MiB, 1.5GiB, 2GB. Errors: syntax, overflow.
[[nodiscard]] Result<Index> parse_bytes(std::string_view text);

}  // namespace reshard
