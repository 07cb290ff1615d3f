/* amx: whether products may use the tile instructions of Intel's AMX (amx.h), or their emulation. */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

static bool wants(const char *text) {
    const char *wanted = getenv("NORCH_AMX");
    return wanted && strcmp(wanted, text) == 0;
}

bool nr_emulates_tiles(void) { return wants("emulated"); }

#if defined(__x86_64__) && defined(__linux__)
#define AMX_BF16 (1u << 22)
#define AMX_TILE (1u << 24)
#define TILE_STATE (3u << 17) /* bits of XCR0: the configuration, and the registers, whose number is */
#define TILE_REGISTERS 18
#define REQUEST_PERMISSION 0x1023 /* ARCH_REQ_XCOMP_PERM of <asm/prctl.h>, which old headers lack */

/* Palette 1 as amx.h configures it: 8 registers of 16 rows of 64 bytes (cpuid 0x1D). */
static bool has_palette(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(0x1D, 0, &a, &b, &c, &d) && a >= 1 && __get_cpuid_count(0x1D, 1, &a, &b, &c, &d) &&
           a >> 16 == 1024 && (b & 0xffff) == 64 && b >> 16 >= 8 && (c & 0xffff) == 16;
}

/* The system saves these registers only for a process that has asked for it. It refuses if a thread's signal stack is
 * too small for them, and in sandboxes: Linux's Documentation/arch/x86/xstate.rst. */
bool nr_has_tiles(void) {
    unsigned a, b, c, d, saved, high;
    if (wants("0")) return false;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (AMX_BF16 | AMX_TILE)) != (AMX_BF16 | AMX_TILE)) return false;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & TILE_STATE) != TILE_STATE || !has_palette()) return false;
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_REGISTERS) == 0;
}
#else
bool nr_has_tiles(void) { return false; }
#endif
