/* nvrtc: NVRTC's functions for the simulation: the text of a kernel is compiled by the C++ compiler that the simulation was
 * compiled by, and its "machine code" is the shared library that this makes. The names and meanings are those of nvrtc.h 12.
 * Environment: NORCH_CUDASIM_CXX, another compiler. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum { SUCCESS, OUT_OF_MEMORY, CREATION_FAILED, INVALID_INPUT, COMPILATION = 6 };

typedef struct text {
    char *bytes;
    size_t size;
} text;

struct program {
    char folder[64]; /* with the source, the headers and what becomes of them */
    text code, log;
};

/* What comes after the source: the kernel as the simulation calls it (modules.cpp). */
static const char call[] =
    "\ntemplate <class A> A argument_of(void (*)(A));\n"
    "using argument = decltype(argument_of(&chain));\n"
    "extern \"C\" unsigned long cudasim_bytes() { return sizeof(argument); }\n"
    "extern \"C\" void cudasim_run(const void *a) { chain(*static_cast<const argument *>(a)); }\n";

static int write_file(const struct program *program, const char *name, const char *bytes, const char *more) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cuda/%s", program->folder, name);
    FILE *file = fopen(path, "w");
    if (!file) return INVALID_INPUT;
    fprintf(file, "%s%s", bytes, more);
    return fclose(file) == 0 ? SUCCESS : INVALID_INPUT;
}

static int read_file(const struct program *program, const char *name, text *to) {
    char path[PATH_MAX];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", program->folder, name);
    FILE *file = fopen(path, "r");
    if (!file) return INVALID_INPUT;
    fstat(fileno(file), &found);
    to->size = (size_t)found.st_size;
    to->bytes = calloc(to->size + 1, 1);
    const size_t n = fread(to->bytes, 1, to->size, file);
    fclose(file);
    return n == to->size ? SUCCESS : INVALID_INPUT;
}

EXPORTED int nvrtcVersion(int *major, int *minor) { return *major = 12, *minor = 0, SUCCESS; }

EXPORTED int nvrtcDestroyProgram(struct program **program) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", (*program)->folder);
    const int status = system(command);
    free((*program)->code.bytes);
    free((*program)->log.bytes);
    free(*program);
    *program = NULL;
    return status == 0 ? SUCCESS : INVALID_INPUT;
}

EXPORTED int nvrtcCreateProgram(struct program **made, const char *source, const char *name, int count,
                                const char *const *headers, const char *const *names) {
    struct program *program = calloc(1, sizeof *program);
    char path[PATH_MAX];
    (void)name;
    strcpy(program->folder, "/tmp/cudasim-nvrtc-XXXXXX");
    int status = mkdtemp(program->folder) ? SUCCESS : CREATION_FAILED;
    for (const char *const *sub = (const char *const[]){"cuda", "core", "families", "cpu", NULL}; *sub && !status;
         sub++) {
        snprintf(path, sizeof path, "%s/%s", program->folder, *sub);
        status = mkdir(path, 0700) == 0 ? SUCCESS : CREATION_FAILED;
    }
    for (int i = 0; i < count && !status; i++) status = write_file(program, names[i], headers[i], "");
    if (!status) status = write_file(program, "source.cu", source, call);
    *made = program;
    if (status) nvrtcDestroyProgram(made);
    return status;
}

/* The headers of the system are the compiler's: only quoted names are looked up among those that were given. */
EXPORTED int nvrtcCompileProgram(struct program *program, int count, const char *const *options) {
    char command[3 * PATH_MAX], *folder = program->folder;
    Dl_info here;
    int rounds = 0;
    for (int i = 0; i < count; i++) rounds |= strcmp(options[i], "--fmad=false") == 0;
    if (!rounds || !dladdr((void *)(uintptr_t)nvrtcVersion, &here)) return INVALID_INPUT;
    const char *named = getenv("NORCH_CUDASIM_CXX"), *slash = strrchr(here.dli_fname, '/');
    snprintf(
        command, sizeof command,
        "%s -std=c++17 -O1 -w -fPIC -fwrapv -shared -I%s -iquote %s/cuda -o %s/code -x c++ %s/cuda/source.cu -x none "
        "%.*slibnorch_cudasim.so >%s/log 2>&1",
        named ? named : CUDASIM_CXX, CUDASIM_HEADERS, folder, folder, folder,
        slash ? (int)(slash - here.dli_fname) + 1 : 0, here.dli_fname, folder);
    const int status = system(command);
    read_file(program, "log", &program->log);
    return status == 0 ? read_file(program, "code", &program->code) : COMPILATION;
}

/* Machine code begins with its length. */
EXPORTED int nvrtcGetCUBINSize(struct program *program, size_t *size) {
    return *size = sizeof(uint64_t) + program->code.size, SUCCESS;
}
EXPORTED int nvrtcGetCUBIN(struct program *program, char *to) {
    const uint64_t size = program->code.size;
    memcpy(to, &size, sizeof size);
    memcpy(to + sizeof size, program->code.bytes, size);
    return SUCCESS;
}
EXPORTED int nvrtcGetProgramLogSize(struct program *program, size_t *size) {
    return *size = program->log.size + 1, SUCCESS;
}
EXPORTED int nvrtcGetProgramLog(struct program *program, char *to) {
    if (program->log.bytes) memcpy(to, program->log.bytes, program->log.size);
    to[program->log.size] = 0;
    return SUCCESS;
}
