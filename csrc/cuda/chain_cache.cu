/* chain_cache: compiled chains as files, for later processes: in the folder that NORCH_CHAIN_CACHE names, or norch in
 * the user's cache (XDG_CACHE_HOME, ~/.cache).
 *
 *   <hash>.chain   length of the text | length of the code | hash of both | text | machine code
 *
 * The text is the source, after a line with what else the code depends on, and is compared in full, so that a file is
 * never taken for another chain. A file is written under a unique name and then renamed. Folder and files must belong
 * to the user, and nobody else may write to them: machine code is run unchanged. A file that cannot be read or written
 * is no error. */
#include "chain_compile.cuh"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#define MOST_FILES 512
#define MOST_BYTES ((off_t)16 << 20) /* of a file */

uint64_t nr_cuda_chain_hash(uint64_t hash, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) hash = (hash ^ static_cast<const unsigned char *>(bytes)[i]) * 0x100000001b3;
    return hash;
}

namespace {

struct head {
    uint64_t text, code, hash;
};

head head_of(const std::string &text, const std::string &code) {
    const uint64_t hash = nr_cuda_chain_hash(NR_CHAIN_HASH, text.data(), text.size());
    return {text.size(), code.size(), nr_cuda_chain_hash(hash, code.data(), code.size())};
}

/* A file or folder, closed at the end of a scope. */
struct opened {
    int file;
    explicit opened(int file) : file(file) {}
    ~opened() {
        if (file >= 0) close(file);
    }
    opened(const opened &) = delete;
    opened &operator=(const opened &) = delete;

    bool is_ours(mode_t kind, struct stat &found) const {
        return file >= 0 && fstat(file, &found) == 0 && (found.st_mode & S_IFMT) == kind && found.st_uid == geteuid() &&
               (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    }
};

std::string folder() {
    const char *named = getenv("NORCH_CHAIN_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (named && *named) return strcmp(named, "0") ? named : "";
    if (cache && *cache == '/') return std::string(cache) + "/norch";
    return home && *home == '/' ? std::string(home) + "/.cache/norch" : "";
}

/* The folder, which is created if it is missing; -1 if none may be used. */
int open_folder(bool make) {
    const std::string path = folder();
    if (path.empty()) return -1;
    for (size_t at = path.find('/', 1); make; at = path.find('/', at + 1)) {
        mkdir(path.substr(0, at).c_str(), 0700);
        if (at == std::string::npos) break;
    }
    struct stat found;
    opened all(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return all.is_ours(S_IFDIR, found) ? dup(all.file) : -1;
}

std::string name_of(const std::string &text) {
    char name[32];
    snprintf(name, sizeof name, "%016llx.chain",
             (unsigned long long)nr_cuda_chain_hash(NR_CHAIN_HASH, text.data(), text.size()));
    return name;
}

bool write_all(int file, const void *bytes, size_t n) {
    for (const char *at = static_cast<const char *>(bytes); n > 0;) {
        const ssize_t done = write(file, at, n);
        if (done <= 0) return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

/* Removes the older half of the files if there are too many. */
void trim(int all) {
    std::vector<std::pair<int64_t, std::string>> files;
    const int again = dup(all);
    DIR *list = again < 0 ? nullptr : fdopendir(again);
    if (!list) return (void)(again >= 0 && close(again));
    while (const dirent *one = readdir(list)) {
        struct stat found;
        if (!strstr(one->d_name, ".chain") || fstatat(all, one->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
        files.emplace_back((int64_t)found.st_mtime, one->d_name);
    }
    closedir(list);
    if (files.size() < MOST_FILES) return;
    std::sort(files.begin(), files.end());
    for (size_t i = 0; i < files.size() / 2; i++) unlinkat(all, files[i].second.c_str(), 0);
}

} // namespace

std::string nr_cuda_read_chain(const std::string &text) {
    opened all(open_folder(false));
    if (all.file < 0) return "";
    opened one(openat(all.file, name_of(text).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat found;
    head h;
    if (!one.is_ours(S_IFREG, found) || found.st_size < (off_t)sizeof h || found.st_size > MOST_BYTES) return "";
    std::string bytes((size_t)found.st_size, 0);
    if (read(one.file, &bytes[0], bytes.size()) != (ssize_t)bytes.size()) return "";
    memcpy(&h, bytes.data(), sizeof h);
    if (h.text != text.size() || bytes.size() - sizeof h < h.text || bytes.compare(sizeof h, h.text, text) != 0)
        return "";
    const std::string code = bytes.substr(sizeof h + h.text);
    return h.code == code.size() && head_of(text, code).hash == h.hash ? code : "";
}

void nr_cuda_write_chain(const std::string &text, const std::string &code) {
    static std::atomic<int> written{0};
    opened all(open_folder(true));
    if (all.file < 0) return;
    trim(all.file);
    const std::string name = name_of(text);
    const std::string temporary = name + "." + std::to_string(getpid()) + "." + std::to_string(written++);
    const head h = head_of(text, code);
    bool good;
    {
        opened one(openat(all.file, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        good = one.file >= 0 && write_all(one.file, &h, sizeof h) && write_all(one.file, text.data(), text.size()) &&
               write_all(one.file, code.data(), code.size());
    }
    if (!good || renameat(all.file, temporary.c_str(), all.file, name.c_str()) != 0)
        unlinkat(all.file, temporary.c_str(), 0);
}
