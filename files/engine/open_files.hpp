// Files that several threads read or write. Each is opened at its first use, and few are open together.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "files/base/open_folder.hpp"
#include "reshard/files/checkpoint.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

class OpenFiles {
public:
    using Open = std::function<Result<File>(const std::string& path)>;
    OpenFiles(std::span<const StoredFile> files, Open open) : open_(std::move(open)) {
        for (const StoredFile& file : files) paths_.push_back(file.path);
    }

    /// Errors: io.
    [[nodiscard]] Result<std::shared_ptr<File>> at(Index number) {
        const std::lock_guard held(mutex_);
        if (const auto known = files_.find(number); known != files_.end()) return known->second;
        RESHARD_TRY(auto& file, open_(paths_[static_cast<std::size_t>(number)]));
        auto shared = std::make_shared<File>(std::move(file));
        if (files_.size() >= open_max) files_.erase(files_.begin());
        files_.emplace(number, shared);
        return shared;
    }

private:
    static constexpr std::size_t open_max = 200;

    std::vector<std::string> paths_;
    Open open_;
    std::mutex mutex_;
    std::map<Index, std::shared_ptr<File>> files_;
};

/// Opens files by their names in a folder.
[[nodiscard]] inline OpenFiles::Open open_in(const OpenFolder& folder, OpenFolder::Way way) {
    return [folder, way](const std::string& name) { return folder.file(name, way); };
}

}  // namespace reshard::files
