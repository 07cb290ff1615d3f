/* calls: hand-written builtins with files of their own. */
#ifndef NR_CALLS_H
#define NR_CALLS_H

#include <stdint.h>

/* region(x, index): a view, or None if the index holds more than integers, slices, ... and None. */
void *nr_py_region(void *self, void *const *given, int64_t n);

/* to_dlpack(x, versioned): a capsule; from_dlpack(capsule): (a tensor, whether its memory is read-only). */
void *nr_py_to_dlpack(void *self, void *const *given, int64_t n);
void *nr_py_from_dlpack(void *self, void *const *given, int64_t n);

/* guard_class(): a new class, the base of context managers that put a setting back (guard.c). */
void *nr_py_guard_class(void *self, void *const *given, int64_t n);

/* Recording and replay: recording.c and replay.c say what they take. */
#define NR_PROGRAM_CALLS(ROW) \
    ROW(record_begin)         \
    ROW(record_cancel)        \
    ROW(record_end)           \
    ROW(record_pause)         \
    ROW(record_resume)        \
    ROW(record_suspend)       \
    ROW(record_host_call)     \
    ROW(unobserved)           \
    ROW(result_of)            \
    ROW(program_uses)         \
    ROW(recording)            \
    ROW(note_unseen)          \
    ROW(replay)               \
    ROW(replay_timed)         \
    ROW(replay_gradient)      \
    ROW(replay_repeated)      \
    ROW(matches)              \
    ROW(differs) ROW(refusal) ROW(is_running) ROW(is_own) ROW(program_calls) ROW(program_memory) ROW(line_of)
/* What norch.profiler asks: profile.c says what they take. */
#define NR_PROFILE_CALLS(ROW) ROW(profile_start) ROW(profile_tell) ROW(profile_stop) ROW(profile_time)
#define NR_DECLARE(name) void *nr_py_##name(void *self, void *const *given, int64_t n);
NR_PROGRAM_CALLS(NR_DECLARE)
NR_PROFILE_CALLS(NR_DECLARE)
#undef NR_DECLARE

#endif
