#!/bin/sh
# Writes 60 small C files: compiling them is process creation and page faults more than computing.
mkdir -p src
n=1
while [ "$n" -le 60 ]; do
    {
        echo '#include <stdio.h>'
        echo '#include <stdlib.h>'
        echo '#include <string.h>'
        f=1
        while [ "$f" -le 12 ]; do
            echo "int f_${n}_${f}(const char *s) { char b[64]; snprintf(b, sizeof b, \"%s %d\", s, ${f}); return (int)strlen(b) + ${n}; }"
            f=$((f + 1))
        done
    } > "src/part_${n}.c"
    n=$((n + 1))
done
