// reshard in one screen. Moving a distributed array from one sharding to another:
//
//   Mesh mesh{{"x", 2}, {"y", 3}};                                    devices, named axes        mesh.hpp
//   Layout source = *parse_layout(mesh, "f32[12288@x,4096]");         the type of an array       layout.hpp, text.hpp
//   Layout target = *parse_layout(mesh, "f32[12288@y,4096]");
//   Synthesis made = *synthesize(source, target);                     the search                 synthesize.hpp
//   Verdict verdict = *check(made.plan, made.execution);              the judge                  check.hpp
//   Executor executor = *Executor::prepare(made.plan, made.execution, backend);   schedules ...  execute.hpp
//   executor.run(in, out, workspace);                                 move the bytes             backend.hpp
//
// Each header reads alone, in the order of the includes below. Backends have headers of their own: local.hpp, mpi.hpp.
#pragma once

#include "reshard/algebra/backend.hpp"            // IWYU pragma: export
#include "reshard/algebra/list.hpp"               // IWYU pragma: export
#include "reshard/algebra/normalize_devices.hpp"  // IWYU pragma: export
#include "reshard/algebra/refinement.hpp"         // IWYU pragma: export
#include "reshard/algebra/run.hpp"                // IWYU pragma: export
#include "reshard/algebra/schedule.hpp"           // IWYU pragma: export
#include "reshard/algebra/simulate.hpp"           // IWYU pragma: export
#include "reshard/algebra/step.hpp"               // IWYU pragma: export
#include "reshard/algebra/tile.hpp"               // IWYU pragma: export
#include "reshard/algebra/view.hpp"               // IWYU pragma: export
#include "reshard/capabilities.hpp"               // IWYU pragma: export
#include "reshard/check.hpp"                      // IWYU pragma: export
#include "reshard/cost.hpp"                       // IWYU pragma: export
#include "reshard/elements.hpp"                   // IWYU pragma: export
#include "reshard/execute.hpp"                    // IWYU pragma: export
#include "reshard/execution.hpp"                  // IWYU pragma: export
#include "reshard/layout.hpp"                     // IWYU pragma: export
#include "reshard/mesh.hpp"                       // IWYU pragma: export
#include "reshard/notation.hpp"                   // IWYU pragma: export
#include "reshard/overlap/choose_pieces.hpp"      // IWYU pragma: export
#include "reshard/overlap/measure_work.hpp"       // IWYU pragma: export
#include "reshard/plan.hpp"                       // IWYU pragma: export
#include "reshard/plan_cache.hpp"                 // IWYU pragma: export
#include "reshard/portable/interpret.hpp"         // IWYU pragma: export
#include "reshard/portable/program.hpp"           // IWYU pragma: export
#include "reshard/portable/write.hpp"             // IWYU pragma: export
#include "reshard/redistribute.hpp"               // IWYU pragma: export
#include "reshard/result.hpp"                     // IWYU pragma: export
#include "reshard/rows.hpp"                       // IWYU pragma: export
#include "reshard/rules.hpp"                      // IWYU pragma: export
#include "reshard/synthesize.hpp"                 // IWYU pragma: export
#include "reshard/text.hpp"                       // IWYU pragma: export
