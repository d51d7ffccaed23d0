// Meshes as PyTorch and JAX print them.
#pragma once

#include "src/text/scanner.hpp"

namespace reshard::notation {

/// True if the text begins as DeviceMesh(...), Mesh(...) or AbstractMesh(...).
[[nodiscard]] bool looks_like_printed_mesh(std::string_view text);

/// Reads one of them from its name to its closing parenthesis. Errors: syntax, mesh, overflow.
[[nodiscard]] Result<Mesh> scan_printed_mesh(Scanner& scanner);

/// The same as a whole text.
[[nodiscard]] Result<Mesh> parse_printed_mesh(std::string_view text);

}  // namespace reshard::notation
