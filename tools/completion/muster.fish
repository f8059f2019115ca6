# muster.fish - completion of muster and musterd in fish.
# Every word comes from the programs' own --help when it is needed, so nothing here has to follow them.

function __muster_program # fails if there is none of that name
    set -l words (commandline -opc)
    command -q $words[1]; and echo $words[1]
end

function __muster_verbs # "verb<tab>summary" a line; the summary begins at a fixed column
    set -l program (__muster_program); or return
    command $program help 2>/dev/null | awk '/^  [a-z]+ / { print $1 "\t" substr($0, 44) }'
end

function __muster_help # the help of the verb that stands on the line, or of musterd
    set -l words (commandline -opc)
    set -l program (__muster_program); or return
    if string match -q '*musterd' $program
        command $program --help 2>/dev/null
    else if set -q words[2]
        command $program $words[2] --help 2>/dev/null </dev/null
    end
end

function __muster_options # "--name<tab>what it does" a line
    __muster_help | string match -rg '^ +(?:-., )?(--[a-z-]+(?: [A-Z]+)? .*)$' \
        | string replace -r '^(--[a-z-]+)(?: [A-Z]+)? +' '$1\t'
end

function __muster_value # what the option before the cursor takes: PATH, JOB, ...; nothing if it takes none
    set -l words (commandline -opc)
    set -l last $words[-1]
    test "$last" = -j; and echo JOB; and return
    __muster_help | string match -rg -- "^ +(?:-., )?$last ([A-Z]+)"
end

function __muster_jobs # of the broker that the environment names, if it answers within a second
    set -l program (__muster_program); or return
    command $program status --timeout 1 --json 2>/dev/null </dev/null \
        | string match -rg '^ *"job": "([^"\\\\]+)"'
end

function __muster_values
    switch (__muster_value)
        case PATH FILE DIR
            __fish_complete_path (commandline -ct)
        case JOB
            __muster_jobs
        case LEVEL
            printf '%s\n' error warning info debug
        case ROLE
            printf '%s\n' node operator viewer
        case FORMAT
            printf '%s\n' text json
    end
end

function __muster_args # what the verb's line in the help lets stand behind it
    set -l words (commandline -opc)
    set -l program (__muster_program); or return
    set -l args (command $program help 2>/dev/null | string match -rg "^  $words[2] +([^ ]*(?: [|] [^ ]+)*)")
    for kind in (string match -ra '[A-Za-z]+' $args)
        switch $kind
            case DIR
                __fish_complete_directories (commandline -ct)
            case JOB
                __muster_jobs
            case VERB
                __muster_verbs
            case '*'
                string match -r '^[a-z]+$' $kind
        end
    end
end

function __muster_after_dashes # behind `muster run ... --`
    contains -- -- (commandline -opc)
end

function __muster_command # what fish knows of the program that the ranks run
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    complete -C (string join ' ' -- $words[(math $at + 1)..])
end

function __muster_dash
    string match -q -- '-*' (commandline -ct)
end

complete -c muster -f
complete -c musterd -f
complete -c muster -n 'test (count (commandline -opc)) = 1' -a '(__muster_verbs)'
complete -c muster -n 'test (count (commandline -opc)) = 2' -a '(__muster_args)'
complete -c muster -n __muster_after_dashes -a '(__muster_command)'
for program in muster musterd
    complete -c $program -n 'not __muster_after_dashes' -a '(__muster_values)'
    complete -c $program -n 'not __muster_after_dashes; and __muster_dash' -a '(__muster_options)'
end
