/// \file
/// reshard for C: layouts and plans as text, rows of bytes, and moves between ranks of one process. Needs nothing but
/// C's own headers. `c_mpi.h` and `c_nccl.h` stand beside it for ranks of a communicator; docs/c.md shows all of it.
///
///   reshard_mesh *mesh;  reshard_layout *source, *target;  reshard_plan *plan;
///   reshard_mesh_parse("x=2,y=3", &mesh, &error);                                   c/layout.h
///   reshard_layout_parse(mesh, "f32[12288@x,4096]", &source, &error);
///   reshard_plan_make(source, target, NULL, &plan, &error);                         c/plan.h
///   reshard_redistribute(backend, source, target, in, in_bytes, out, out_bytes, &error);   c/run.h
///   reshard_halo_fill(halo, array, bytes, &error);                                  c/halo.h
///   reshard_boxes_run(boxes, have, have_bytes, want, want_bytes, &error);           c/boxes.h
#ifndef RESHARD_C_H
#define RESHARD_C_H

#include "reshard/c/base.h"
#include "reshard/c/boxes.h"
#include "reshard/c/change.h"
#include "reshard/c/digest.h"
#include "reshard/c/halo.h"
#include "reshard/c/layout.h"
#include "reshard/c/pages.h"
#include "reshard/c/plan.h"
#include "reshard/c/rows.h"
#include "reshard/c/run.h"

#endif
