// The reader is event by event because a JSON value would hide what must not pass: keys given twice, and nesting deep
// enough to hurt. It keeps the id that it saw even when the line breaks later, so that the error line can carry it.
#include "tool/request/problem_line.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

#include "files/formats/json_text.hpp"

namespace reshard::cli {
namespace {

// How the value of a key is read. `read` returns false for a value of another type than the one that is wanted.
struct Field {
    const char* wanted;
    std::function<bool(Question&, const Json&)> read;
    bool list = false;  // an array, whose elements are read one by one
};
using Fields = std::map<std::string, Field, std::less<>>;

// The field whose text goes to `member`. The text of a limit may be a number.
template <class Owner, class Text>
Field field_of(Text Owner::*member, bool limit = false) {
    constexpr bool flag = std::is_same_v<Text, bool>;
    constexpr bool list = std::is_same_v<Text, std::vector<std::string>>;
    const auto read = [member, limit](Question& question, const Json& given) {
        const bool right = flag ? given.is_boolean() : given.is_string() || (limit && given.is_number_integer());
        if (!right) return false;
        if constexpr (flag) {
            question.*member = given.get<bool>();
        } else if constexpr (list) {
            (question.*member).push_back(given.get<std::string>());
        } else {
            question.*member = given.is_string() ? given.get<std::string>() : given.dump();
        }
        return true;
    };
    return {flag ? "true or false" : list ? "an array of strings" : limit ? "a size in bytes" : "a string", read, list};
}

const Fields& fields_of(bool options) {
    static const Fields of_options = {
#define RESHARD_OPTION(kind, name, ...) {#name, field_of(&Question::name, std::string_view(#kind) == "limit")},
#define RESHARD_OTHER_OPTION(...)
#include "src/tables/options.def"
    };
    static const auto never = [](Question&, const Json&) { return false; };
    static const Fields of_problem = {{"id", {"a string or a number", never}},
                                      {"mesh", field_of(&Question::mesh)},
                                      {"source", field_of(&Question::source)},
                                      {"target", field_of(&Question::target)},
                                      {"target_mesh", field_of(&Question::target_mesh)},
                                      {"notation", field_of(&Question::notation)},
                                      {"array", field_of(&Question::array)},
                                      {"target_array", field_of(&Question::target_array)},
                                      {"permute", field_of(&Question::permute)},
                                      {"pad", field_of(&Question::pad)},
                                      {"options", {"an object", never}}};
    return options ? of_options : of_problem;
}

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
        if (!field().list || in_list_) return refuse(wrong_type("an array"));
        return in_list_ = true;
    }
    bool end_array() override {
        in_list_ = false;
        return true;
    }

    bool key(string_t& name) override {
        key_ = name;
        if (fields_of(depth_ == 2).count(name) == 0)
            return refuse(fmt::format("unknown {} \"{}\"", depth_ == 1 ? "field" : "option", name));
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
    [[nodiscard]] const Field& field() const { return fields_of(depth_ == 2).find(key_)->second; }

    bool refuse(std::string message) {
        if (!error) error = Error{Code::syntax, std::move(message)};
        return false;
    }

    [[nodiscard]] std::string wrong_type(const std::string& given) const {
        return fmt::format("\"{}\" must be {}, it is {}", key_, field().wanted, given);
    }

    bool value(const Json& given, const char* type) {
        if (depth_ == 0) return refuse(fmt::format("a problem is an object, this line is {}", type));
        if (depth_ == 1 && key_ == "id") {
            id = given;
            return true;
        }
        if (given.is_null() && !in_list_ && (key_ == "target_mesh" || depth_ == 2)) return true;
        const bool read = field().list == in_list_ && field().read(question, given);
        return read || refuse(wrong_type(type));
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
