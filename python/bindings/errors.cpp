#include "python/bindings/errors.hpp"

#include "src/base/printable.hpp"

namespace reshard::python {

void raise(const Error& error) {
    const nb::object made = nb::module_::import_("reshard.errors")
                                .attr("of_code")(text_of(name(error.code)), printable(error.message).c_str(),
                                                 text_of(error.text), error.offset, text_of(describe(error)));
    PyErr_SetObject(made.type().ptr(), made.ptr());
    throw nb::python_error();
}

}  // namespace reshard::python
