# The library: its objects, which csrc/ lists, and the files that make writes for them.
ISA_SOURCES := $(sort $(wildcard csrc/cpu/*_isa.c))
SOURCES := $(filter-out $(ISA_SOURCES),$(sort $(wildcard csrc/*.c csrc/core/*.c csrc/program/*.c csrc/ops/*.c csrc/python/*.c csrc/python/capture/*.c csrc/cpu/*.c)))
OBJECTS := $(SOURCES:csrc/%.c=$(BUILD)/%.o) \
    $(foreach isa,$(ISAS),$(ISA_SOURCES:csrc/%.c=$(BUILD)/%.$(isa).o))

# The public C API. The ABI number is a hash of these files: a plugin built from others is refused.
HEADERS := csrc/norch.h csrc/norch_families.h csrc/norch_runtime.h
ABI_FILES := $(HEADERS) csrc/ops.def csrc/complex.def csrc/optim.def csrc/dtypes.def csrc/families.def csrc/core/backend.h \
    csrc/core/device.h csrc/core/dtype.h csrc/core/fields.h csrc/core/optable.h csrc/core/plan.h $(sort $(wildcard csrc/families/*.h))
ABI = 0x$(shell cat $(ABI_FILES) | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c 1-16)ull

# C's complex functions differ between Windows' runtimes, and wine lacks some. These are musl's; zig has the sources.
MUSL := $(dir $(firstword $(CC)))lib/libc/musl/src
MUSL_OBJECTS := $(if $(WINDOWS),$(patsubst %,$(BUILD)/musl/%.o,__cexp __cexpf $(foreach f,abs arg acos acosh asin asinh atan atanh \
    cos cosh exp log pow sin sinh sqrt tan tanh,c$f c$ff)))
$(MUSL_OBJECTS): $(BUILD)/musl/%.o: $(MUSL)/complex/%.c $(BUILD)/flags
	$(if $(V),,@echo "  CC    musl/$(<F)")
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -fvisibility=hidden '-Dhidden=__attribute__((visibility("hidden")))' -Irelease/windows -I$(MUSL)/internal -c -o $@ $<

# A DLL lists its exports.
EXPORTS := $(if $(WINDOWS),$(BUILD)/exports.def)
$(BUILD)/exports.def: $(HEADERS)
	@mkdir -p $(@D)
	@{ echo EXPORTS; sed -n 's/.*\b\(norch_[a-z0-9_]*\)(.*/    \1/p' $^ | sort -u; } > $@

$(LIB): $(OBJECTS) $(MUSL_OBJECTS) $(BUILD)/objects $(EXPORTS)
	$(if $(V),,@echo "  LINK  $@")
	@mkdir -p $(@D)
	$(Q)$(if $(WASM),$(WASM_LINK) -o $@.new $(OBJECTS),$(CC) $(LINK) -o $@.new $(OBJECTS) $(MUSL_OBJECTS) $(EXPORTS) -lm)
	@mv $@.new $@

define compile
$(if $(V),,@echo "  CC    $<$(if $1,  $1)")
@mkdir -p $(@D)
$(Q)$(CC) $(FLAGS) $(if $1,$(UNOPTIMIZED)) $(FLAGS_$1) $(EXTRA) -MMD -MP -c -o $@ $<
endef

$(BUILD)/%.o: csrc/%.c $(BUILD)/flags
	$(call compile,)

define isa_rule
$(BUILD)/%_isa.$1.o: csrc/%_isa.c $(BUILD)/flags
	$$(call compile,$1)
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))

# The functions of these headers as Python builtins, and the list of others. make needs a Python that runs here; the
# library fits any.
BUILD_PYTHON = $(or $(PYTHON),$(firstword $(shell for p in python3 $(VENV)/bin/python python; do command -v $$p; done; true)),python3)
$(BUILD)/python/calls.inc: csrc/python/make_calls.py $(HEADERS) $(wildcard csrc/python/*.c csrc/python/capture/*.c)
	@mkdir -p $(@D)
	$(Q)$(BUILD_PYTHON) $^ > $@
$(BUILD)/python/calls.o: EXTRA = -I$(BUILD)/python
$(BUILD)/python/calls.o: $(BUILD)/python/calls.inc
# The opcodes, which every object needs; few need the formulas of ops.def. The file is kept if its text is the same.
OPCODES := $(BUILD)/core/opcodes.inc
$(OPCODES): csrc/ops.def
	@mkdir -p $(@D)
	@sed -n 's/^[A-Z]*( *\([a-z0-9_]*\),.*/    NR_OP_\1,/p' $< > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(OBJECTS): | $(OPCODES)
# The declarations of the headers as string literals, one for each line, without comments.
$(BUILD)/core/header.inc: $(HEADERS)
	@mkdir -p $(@D)
	$(Q)sed -e :more -e '/\/\*/{' -e '/\*\//!{' -e N -e 'b more' -e '}' -e '}' -e 's/ *\/\*.*\*\///' -e '/^ *$$/d' \
	    -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $^ > $@
$(BUILD)/core/library.o: EXTRA = -DNORCH_ABI=$(ABI)
$(BUILD)/core/library.o: $(ABI_FILES) $(BUILD)/core/header.inc

# Notes of the flags and of the list of files: if the flags change, everything is rebuilt; if the list changes, the
# library is linked again. Flags that change and change back, as in a dry run, rebuild nothing. A wheel's make sees
# BUILD under another name.
$(eval $(call note,$(BUILD)/wanted,$(COMPILER) $(MACHINE) $(CC) $(subst -I$(BUILD)/core,,$(FLAGS)) $(COMPACT) $(foreach isa,$(ISAS),$(FLAGS_$(isa))) $(shell cksum < mk/flags.mk)))
$(eval $(call note,$(BUILD)/objects,$(LINK) $(OBJECTS)))
$(BUILD)/flags: $(BUILD)/wanted
	@! cmp -s $< $@ || { touch -r $@ $<; exit 0; }; \
	printf '%s\n' '#include <math.h>' '#include <pthread.h>' 'int main(void) { return 0; }' > $(BUILD)/try.c; \
	$(CC) $(THREADS) $(if $(WASM),-c) -o $(BUILD)/try $(BUILD)/try.c $(if $(WASM),,-lm) || { \
	    echo 'norch needs the headers of the C library, and "$(CC)" finds none: install them (Debian, Ubuntu: apt install build-essential)' >&2; \
	    exit 1; }; \
	cp $< $@

