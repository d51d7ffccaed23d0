// reshard in one screen. One call moves a distributed array from one sharding to another; each rank holds a tile.
//
//   Mesh mesh = *parse_mesh("x=2,y=3");                                   // named axes of 6 devices     text.hpp
//   Layout source = *parse_layout(mesh, "f32[1536@x,512]");               // x cuts dimension 0          layout.hpp
//   Layout target = *parse_layout(mesh, "f32[1536@y,512]");               // y cuts dimension 0
//   Result<void> moved = redistribute(backend, source, target, in, out);  // collective              redistribute.hpp
//
// The same in parts, to see the cost before the move and to plan once for many moves:
//
//   Synthesis made = *synthesize(source, target);                         // the search                synthesize.hpp
//   Verdict verdict = *check(made.plan(), made.execution());              // the judge                      check.hpp
//   Executor executor = *Executor::prepare(made, backend);                // collective                   execute.hpp
//   Result<void> ran = executor.run(in, out);                             // any number of times
//
// A backend is one of backends/local.hpp, backends/mpi.hpp, backends/nccl.hpp.
// planner/ is for authors of planners and backends; model/, files/, emit/, overlap/ and notations/ are products.
#pragma once

#include "reshard/check.hpp"         // IWYU pragma: export
#include "reshard/elements.hpp"      // IWYU pragma: export
#include "reshard/execute.hpp"       // IWYU pragma: export
#include "reshard/execution.hpp"     // IWYU pragma: export
#include "reshard/layout.hpp"        // IWYU pragma: export
#include "reshard/mesh.hpp"          // IWYU pragma: export
#include "reshard/plan.hpp"          // IWYU pragma: export
#include "reshard/problem.hpp"       // IWYU pragma: export
#include "reshard/redistribute.hpp"  // IWYU pragma: export
#include "reshard/result.hpp"        // IWYU pragma: export
#include "reshard/synthesize.hpp"    // IWYU pragma: export
#include "reshard/text.hpp"          // IWYU pragma: export
