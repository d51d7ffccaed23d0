#include "meaning/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>

namespace reshard::test {

namespace {

struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

}  // namespace

// Both streams are unnamed files, so that neither end waits for the other.
Ran run_tool(const std::vector<std::string>& arguments, const std::string& in) {
    const File input(std::tmpfile());
    const File output(std::tmpfile());
    if (!input || !output) return {};
    if (std::fwrite(in.data(), 1, in.size(), input.get()) != in.size()) return {};
    std::rewind(input.get());  // flushes the buffer too
    std::vector<std::string> words = {RESHARD_TOOL};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t streams;
    posix_spawn_file_actions_init(&streams);
    posix_spawn_file_actions_adddup2(&streams, fileno(input.get()), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&streams, fileno(output.get()), STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&streams, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t process = 0;
    const int failed = posix_spawn(&process, RESHARD_TOOL, &streams, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&streams);
    int status = 0;
    if (failed != 0 || waitpid(process, &status, 0) != process) return {};
    Ran ran{WIFEXITED(status) ? WEXITSTATUS(status) : -1, {}};
    std::rewind(output.get());
    std::array<char, 1 << 16> buffer;
    for (std::size_t bytes = 1; bytes > 0;) {
        bytes = std::fread(buffer.data(), 1, buffer.size(), output.get());
        ran.out.append(buffer.data(), bytes);
    }
    return ran;
}

}  // namespace reshard::test
