// The parts of the module reshard._core.
#pragma once

#include <nanobind/nanobind.h>

namespace reshard::python {

void add_layouts(nanobind::module_& module);        ///< Mesh, Layout, Machine, and their notations
void add_plans(nanobind::module_& module);          ///< Plan, synthesize, explain. After the layouts
void add_lists(nanobind::module_& module);          ///< many arrays in one plan. After the plans
void add_overlap(nanobind::module_& module);        ///< a run beside computation. After the plans
void add_rows(nanobind::module_& module);           ///< a move as rows of bytes
void add_row_transport(nanobind::module_& module);  ///< rows packed, with addresses, in pages. After the layouts
void add_digests(nanobind::module_& module);        ///< digests of moved bytes. After the layouts
void add_portable(nanobind::module_& module);       ///< plans as operations on tiles. After the plans
void add_local(nanobind::module_& module);          ///< ranks in this process. After the schedules
void add_axis_moves(nanobind::module_& module);     ///< prices of moves that change one mesh axis after another
void add_programs(nanobind::module_& module);       ///< programs of tasks and moves
void add_schedules(nanobind::module_& module);      ///< schedules of programs. After plans and programs

}  // namespace reshard::python
