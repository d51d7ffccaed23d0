// The reader is event by event because a JSON value would hide what must not pass: keys given twice, and nesting deep
// enough to hurt. It keeps the id that it saw even when the line breaks later, so that the error line can carry it.
#include "tool/request/problem_line.hpp"

#include <fmt/format.h>

#include <set>

#include "files/formats/json_text.hpp"

namespace reshard::cli {
namespace {

class Reader : public nlohmann::json_sax<Json> {
public:
    Question question;
    Json id;
    std::optional<Error> error;

    bool null() override { return value(nullptr, "null"); }
    bool boolean(bool given) override { return value(given, "a boolean"); }
    bool number_integer(number_integer_t given) override { return value(given, "a number"); }
    bool number_unsigned(number_unsigned_t given) override { return value(given, "a number"); }
    bool number_float(number_float_t given, const string_t&) override { return value(given, "a number"); }
    bool string(string_t& given) override { return value(given, "a string"); }
    bool binary(binary_t&) override { return refuse("binary values have no place in a problem"); }

    bool start_object(std::size_t) override {
        if (depth_ == 0 || (depth_ == 1 && key_ == "options")) {
            ++depth_;
            seen_.clear();
            return true;
        }
        return refuse(depth_ == 1 ? wrong_type("an object") : "options are not nested");
    }
    bool end_object() override {
        if (depth_-- == 2) seen_ = std::move(seen_outside_);
        return true;
    }
    bool start_array(std::size_t) override {
        if (depth_ == 0) return refuse("a problem is an object, this line is an array");
        if (key_ != "without" || in_list_) return refuse(wrong_type("an array"));
        return in_list_ = true;
    }
    bool end_array() override {
        in_list_ = false;
        return true;
    }

    bool key(string_t& name) override {
        key_ = name;
        const bool known = depth_ == 1 ? known_fields().count(name) > 0 : known_options().count(name) > 0;
        if (!known) return refuse(fmt::format("unknown {} \"{}\"", depth_ == 1 ? "field" : "option", name));
        if (!seen_.insert(name).second) return refuse(fmt::format("\"{}\" is given twice", name));
        if (depth_ == 1 && name == "options") seen_outside_ = seen_;
        return true;
    }

    bool parse_error(std::size_t place, const std::string&, const nlohmann::detail::exception& thrown) override {
        return refuse(fmt::format("not JSON, at byte {}: {}", place, files::sentence_of(thrown)));
    }

    [[nodiscard]] bool has(const std::string& field) const { return seen_.count(field) > 0; }
    [[nodiscard]] bool empty() const { return seen_.empty(); }

private:
    static const std::set<std::string>& known_fields() {
        static const std::set<std::string> names = {"id",       "mesh",  "source",       "target", "target_mesh",
                                                    "notation", "array", "target_array", "options"};
        return names;
    }
    static const std::set<std::string>& known_options() {
        static const std::set<std::string> names = {"vocabulary",          "objective", "machine", "peak_bytes_max",
                                                    "footprint_bytes_max", "donate",    "without"};
        return names;
    }

    bool refuse(std::string message) {
        if (!error) error = Error{Code::syntax, std::move(message)};
        return false;
    }

    [[nodiscard]] std::string wrong_type(const std::string& given) const {
        const bool size = key_ == "peak_bytes_max" || key_ == "footprint_bytes_max";
        const char* wanted = depth_ == 1 && key_ == "id"        ? "a string or a number"
                             : depth_ == 1 && key_ == "options" ? "an object"
                             : key_ == "donate"                 ? "true or false"
                             : key_ == "without"                ? "an array of strings"
                             : size                             ? "a size in bytes"
                                                                : "a string";
        return fmt::format("\"{}\" must be {}, it is {}", key_, wanted, given);
    }

    bool value(const Json& given, const char* type) {
        if (depth_ == 0) return refuse(fmt::format("a problem is an object, this line is {}", type));
        if (depth_ == 1 && key_ == "id") {
            id = given;
            return true;
        }
        if (key_ == "donate" && given.is_boolean()) {
            question.donate = given.get<bool>();
            return true;
        }
        if (in_list_ && given.is_string()) {
            question.without.push_back(given.get<std::string>());
            return true;
        }
        if (given.is_null() && !in_list_ && (key_ == "target_mesh" || depth_ == 2)) return true;
        if (key_ == "peak_bytes_max" || key_ == "footprint_bytes_max") return size(given, type);
        return text(given, type);
    }

    bool size(const Json& given, const char* type) {
        if (!given.is_number_integer() && !given.is_string()) return refuse(wrong_type(type));
        auto& limit = key_ == "peak_bytes_max" ? question.peak_bytes_max : question.footprint_bytes_max;
        limit = given.is_string() ? given.get<std::string>() : given.dump();
        return true;
    }

    bool text(const Json& given, const char* type) {
        if (!given.is_string() || key_ == "options" || key_ == "donate" || key_ == "without")
            return refuse(wrong_type(type));
        auto words = given.get<std::string>();
        if (key_ == "mesh") question.mesh = std::move(words);
        if (key_ == "target_mesh") question.target_mesh = std::move(words);
        if (key_ == "source") question.source = std::move(words);
        if (key_ == "target") question.target = std::move(words);
        if (key_ == "notation") question.notation = std::move(words);
        if (key_ == "array") question.array = std::move(words);
        if (key_ == "target_array") question.target_array = std::move(words);
        if (key_ == "vocabulary") question.vocabulary = std::move(words);
        if (key_ == "objective") question.objective = std::move(words);
        if (key_ == "machine") question.machine = std::move(words);
        return true;
    }

    int depth_ = 0;
    bool in_list_ = false;  // of `without`
    std::string key_;
    std::set<std::string> seen_;
    std::set<std::string> seen_outside_;
};

}  // namespace

ProblemLine parse_problem_line(std::string_view line) {
    Reader reader;
    const bool read = Json::sax_parse(line.begin(), line.end(), &reader);
    ProblemLine result{reader.id, reader.question};
    if (const auto hidden = files::hidden_byte(line)) {
        result.question = fail(Code::syntax, fmt::format("not JSON, at byte {}: {}", hidden->place, hidden->what));
        return result;
    }
    if (!read || reader.error) {
        result.question = tl::unexpected(reader.error.value_or(Error{Code::syntax, "not JSON"}));
        return result;
    }
    for (const char* field : {"mesh", "source", "target"}) {
        if (reader.has(field)) continue;
        result.question = fail(Code::syntax, fmt::format("\"{}\" is missing", field));
        break;
    }
    return result;
}

}  // namespace reshard::cli
