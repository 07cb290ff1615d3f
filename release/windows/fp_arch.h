/* fp_arch: what musl's sources include; x86-64 and arm64 have nothing to say here. */
