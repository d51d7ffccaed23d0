// Text in JAX's notation, both ways: f32[8192@(x,y),4096,128@z:(2)2]{U:w}. Every parser reports the first wrong place.
#pragma once

#include "reshard/plan.hpp"

namespace reshard {

/// mesh := [axis {"," axis}]; axis := name "=" size. Example: x=2,y=3. Empty text is the mesh of one device.
[[nodiscard]] Result<Mesh> parse_mesh(std::string_view text);
[[nodiscard]] std::string format(const Mesh& mesh);

/// layout := dtype "[" [dim {"," dim}] "]" ["{" unreduced ":" axes "}"]; dim := extent ["@" axes];
/// unreduced := "U" (a sum) | "max" | "min" | "prod" | "avg";
/// axes := axis | "(" [axis {"," axis}] ")"; axis := name [":(" before ")" size]. Major to minor.
[[nodiscard]] Result<Layout> parse_layout(const Mesh& mesh, std::string_view text);
[[nodiscard]] std::string format(const Layout& layout);

/// plan := "mesh " mesh NL "source " layout NL {kind " " layout NL} "target " layout NL.
[[nodiscard]] Result<Plan> parse_plan(std::string_view text);
[[nodiscard]] std::string format(const Plan& plan);

/// A byte count for people: 0, 512 B, 96.0 MiB.
[[nodiscard]] std::string format_bytes(Index bytes);
/// A size in bytes: 1024, 96MiB, 1.5GiB, 2GB. Errors: syntax, overflow.
[[nodiscard]] Result<Index> parse_bytes(std::string_view text);

}  // namespace reshard
