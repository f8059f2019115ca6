#!/bin/bash
# prose_selftest.sh - prose.sh must be able to fail: one offence at a time in a small tree.
set -eu
. "$(dirname "$0")/lib_selftest.sh"
words() { printf 'word %.0s' $(seq "$1"); }

clean_tree() {
    rm -rf "$tree"
    mkdir -p "$tree/tools/man" "$tree/client/include/muster" "$tree/tests/fuzz"
    printf '# Title\n\nOne sentence. Another one.\n\n```\n%s\n```\n' "$(words 50)" >"$tree/README.md"
    printf '| a | b |\n|---|---|\n| %s | %s |\n' "$(words 20)" "$(words 20)" >"$tree/OTHER.md"
    printf '.TH X 1\n.SH NAME\n.TP\n%s\n%s.\n.EX\n%s\n.EE\n' "$(words 9)" "$(words 12)" "$(words 10)$(words 10)" >"$tree/tools/man/x.1"
    { # what ends a sentence: a "·", a line that is set in, an empty one, the comment
        printf "/* %s · %s ·\n * %s\n *\n * %s\n *   %s\n" "$(words 8)" "$(words 10)" "$(words 18)" "$(words 15)" "$(words 14)"
        printf ' * %s */\n/* %s */\nint word; %s\n' "$(words 15)" "$(words 16)" "// $(words 15)"
    } >"$tree/client/include/muster/x.h"
    printf 'const char *anew = "anew"; /* Short. */\n' >"$tree/client/node.c"
    printf '/* node - runs. What always holds: no fork. What is it made of? It\n * holds what it has. %s\n * %s */\n' "$(words 14)" "$(words 18)" >>"$tree/client/node.c"
    printf '/* node\n *   a b   what it is\n * a-to-z   the same */\n' >>"$tree/client/node.c"
    printf '%s. Anew.\n' "$(words 90)" >"$tree/tests/fuzz/corpus.md"
}

refuses() { # FILE TEXT FINDING - the text is appended to the file
    clean_tree
    printf '%b' "$2" >>"$tree/$1"
    must_refuse "$1 with ${2:0:80}" "^$1:[0-9]*: $3" bash "$here/prose.sh" "$tree"
}

clean_tree
bash "$here/prose.sh" "$tree" || { echo "a tree without fault was refused"; failed=1; }
refuses README.md "\n$(words 26).\n" 'long: 26 words'
refuses OTHER.md "\n$(words 26).\n" 'long: 26 words'
refuses OTHER.md "\n$(words 16)\n$(words 10).\n" 'long: 26 words' # over two lines
refuses OTHER.md "| a | $(words 26) |\n" 'long: 26 words'
refuses OTHER.md "\n- $(words 26)\n- short\n" 'long: 26 words'
refuses tools/man/x.1 ".PP\n$(words 16)\n$(words 10).\n" 'long: 26 words'
refuses tools/man/x.1 ".\\\\\" $(words 21)\n" 'long: 10[0-9] columns'
refuses client/include/muster/x.h "/* $(words 21) */\n" 'long: 111 columns'
refuses client/include/muster/x.h "/* $(words 15)\n * $(words 11)\n */\n" 'long: 26 words'
refuses client/include/muster/x.h "/* $(words 10)\n * $(words 10)\n * $(words 6). */\n" 'long: 26 words'
refuses client/include/muster/x.h '/* What there is and who has it. */\n' 'headless'
refuses client/include/muster/x.h '/* It begins anew. */\n' 'word: anew'
refuses tools/man/x.1 'It was put back.\n' 'word: put back'
refuses client/node.c 'int a; /* Begun\n * anew. */\n' 'word: anew'
refuses client/node.c "/* $(words 21) */\n" 'long: 11[0-9] columns'
refuses client/node.c 'int a; /* It runs.\n * Who comes first waits. */\n' 'headless'
refuses client/node.c '/* node - runs.\n * and ends of it run      what takes each step */\n' 'table'
refuses client/node.c '/* It runs, and\n * ends. / */\n' 'stray'
refuses client/node.c '/* It runs, and ends.\n * / */\n' 'stray'
refuses client/include/muster/x.h '/* It runs. / / */\n' 'stray'
refuses OTHER.md '\nIt runs all the same.\n' 'word: all the same'
refuses OTHER.md '\nWho comes first waits for the others.\n' 'headless'
refuses README.md "$(yes 'Short. ' | head -1200 | tr '\n' ' ')\n" 'size: 9[0-9]* bytes, 8192 at most'
refuses tests/README.md "$(yes 'Short. ' | head -900 | tr '\n' ' ')\n" 'size: [67][0-9]* bytes, 6144 at most'
[ "$failed" = 0 ] && echo "every offence is found"
exit "$failed"
