#include "python/bindings/errors.hpp"

#include "src/base/printable.hpp"

namespace reshard::python {
namespace {

// A sentence may quote a part of a character that the program wrote; raising must not fail for that.
nb::object readable(std::string_view text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

const char* class_of(Code code) {
    switch (code) {
#define RESHARD_CODE(name, fortran, exit, python, ...) \
    case Code::name:                                   \
        return #python;
#include "src/tables/codes.def"
    }
    return "Error";
}

}  // namespace

void raise(const Error& error) {
    const InPython running;
    const nb::object made =
        nb::module_::import_("reshard.errors")
            .attr(class_of(error.code))(text_of(printable(error.message)), text_of(name(error.code)),
                                        readable(error.text), error.offset, readable(describe(error)));
    PyErr_SetObject(made.type().ptr(), made.ptr());
    throw nb::python_error();
}

std::string string_of(nb::handle text) {
    Py_ssize_t size = 0;
    const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes == nullptr) nb::raise_python_error();
    return {bytes, static_cast<std::size_t>(size)};
}

void expect_home(const Home& home, const char* what) {
    if (home.here()) return;
    raise({Code::usage, std::string(what) + " belong to process " + std::to_string(home.process()) + ", and process " +
                            std::to_string(getpid()) + " was forked off it: a process makes and uses its own"});
}

}  // namespace reshard::python
