// The module reshard._live: versions of arrays that move between jobs that were started apart.
#include "python/bindings/live/groups.hpp"

NB_MODULE(_live, module) {
    module.doc() = "Versions of arrays between jobs. Use it through reshard.live.";
    reshard::python::watch_exit();
    reshard::python::add_groups(module);
    reshard::python::add_publishers(module);
    reshard::python::add_subscribers(module);
    reshard::python::add_status(module);
}
