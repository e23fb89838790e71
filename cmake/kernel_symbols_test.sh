#!/bin/sh
# usage: kernel_symbols_test.sh NM LIBRARY
# Checks that the files compiled for newer processors export nothing but their table of kernels. The
# linker keeps one copy of an inline function for the whole program: if that were one compiled for a
# newer processor, the program would crash on older ones.
symbols=$("$1" -A --defined-only --extern-only "$2" | grep 'avx[0-9]*\.cc\.o') || exit 1
tables=$(printf '%s\n' "$symbols" | grep -c 'KernelsE$')
others=$(printf '%s\n' "$symbols" | grep -v 'KernelsE$')
printf '%s tables; others: %s\n' "$tables" "${others:-none}"
[ "$tables" -eq 2 ] && [ -z "$others" ]
