#!/bin/sh
# usage: kernel_symbols_test.sh NM LIBRARY
# The linker keeps one copy of an inline function for the whole program. Were it the one compiled for
# a newer processor, older ones would stumble over it: so the files of these levels may define
# nothing that can be seen from elsewhere but their table.
symbols=$("$1" -A --defined-only --extern-only "$2" | grep 'avx[0-9]*\.cc\.o') || exit 1
tables=$(printf '%s\n' "$symbols" | grep -c 'KernelsE$')
others=$(printf '%s\n' "$symbols" | grep -v 'KernelsE$')
printf '%s tables; others: %s\n' "$tables" "${others:-none}"
[ "$tables" -eq 2 ] && [ -z "$others" ]
