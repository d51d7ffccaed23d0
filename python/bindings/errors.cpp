#include "python/bindings/errors.hpp"

namespace reshard::python {

void raise(const Error& error) {
    const nb::object made = nb::module_::import_("reshard.errors")
                                .attr("of_code")(text_of(name(error.code)), error.message.c_str(), text_of(error.text),
                                                 error.offset, text_of(describe(error)));
    PyErr_SetObject(made.type().ptr(), made.ptr());
    throw nb::python_error();
}

void expect_home(const Home& home, const char* what) {
    if (home.here()) return;
    raise({Code::usage, std::string(what) + " belong to process " + std::to_string(home.process()) + ", and process " +
                            std::to_string(getpid()) + " was forked off it: a process makes and uses its own"});
}

}  // namespace reshard::python
