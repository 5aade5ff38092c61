# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_git_claim_global_optspecs
    string join \n remote= timeout= json q/quiet color= h/help V/version
end

function __fish_git_claim_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_git_claim_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_git_claim_using_subcommand
    set -l cmd (__fish_git_claim_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c git-claim -n "__fish_git_claim_needs_command" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_needs_command" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_needs_command" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_needs_command" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_needs_command" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_needs_command" -s V -l version -d 'Print version'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "take" -d 'Claim an issue, if nobody else has'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "release" -d 'Give a claim back'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "list" -d 'List the claims on the remote'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "show" -d 'Show the whole records of claims'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "stale" -d 'Report the claims that somebody should look at'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "verify" -d 'Ask whether claims are still yours'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "renew" -d 'Say that you are still at it'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "doctor" -d 'Ask whether the remote can hold claims'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "run" -d 'Run a command for as long as the claim is ours'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "ask" -d 'Ask the holder of a claim to stop'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "man" -d 'Print the manual page'
complete -c git-claim -n "__fish_git_claim_needs_command" -f -a "completions" -d 'Print the completions for a shell'
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l limit -d 'With --any: take up to so many' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l note -d 'Why, in a line for people' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l branch -d 'The branch that the work will be on, for people' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l as -d 'Who holds the claim, if not your git identity' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l wait -d 'Wait so long for a claim that is held (10m, forever)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l ask -d 'While waiting, ask each holder to stop: the newest is to have it' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l process -d 'The process that holds the claim, as in `--process $$`' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l heartbeat -d 'Promise a renewal every so often (2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l over -d 'Take over somebody else\'s claim, if its id is still ID' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l reason -d 'Why it is taken over, for the one whose claim it was' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l any -d 'Of several names, take the first that is free'
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l shuffle -d 'With --any: try them in a random order'
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l one-by-one -d 'Take several one after the other, or none'
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l confirm -d 'Read the claim again before an `ok` of the remote is believed'
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l resume -d 'Say yes if this clone holds it already'
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand take" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand release" -l expect -d 'Release somebody else\'s claim, if its id is still ID' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand release" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand release" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand release" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand release" -l all -d 'Release every claim of this clone on the remote'
complete -c git-claim -n "__fish_git_claim_using_subcommand release" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand release" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand release" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand list" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand list" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand list" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand list" -l long -d 'Read the records too: holder, host, age and note of every claim'
complete -c git-claim -n "__fish_git_claim_using_subcommand list" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand list" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand show" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand show" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand show" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand show" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand show" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand stale" -l older-than -d 'Call a claim old after this long (90m, 2h30m, 3 days)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand stale" -l closed -d 'Report claims on the closed issues in FILE too (`-` for standard input)' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand stale" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand stale" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand stale" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand stale" -l exit-code -d 'Exit with 3 when something is stale'
complete -c git-claim -n "__fish_git_claim_using_subcommand stale" -l all -d 'Show every claim with its state'
complete -c git-claim -n "__fish_git_claim_using_subcommand stale" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand stale" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand stale" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand verify" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand verify" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand verify" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand verify" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand verify" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand renew" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand renew" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand renew" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand renew" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand renew" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand renew" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand doctor" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand doctor" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand doctor" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand doctor" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand doctor" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l note -d 'Why, in a line for people' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l branch -d 'The branch that the work will be on, for people' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l as -d 'Who holds the claim, if not your git identity' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l wait -d 'Wait so long for a claim that is held (10m, forever)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l ask -d 'While waiting, ask each holder to stop: the newest is to have it' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l heartbeat -d 'Renew the claim every so often' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l on-lost -d 'What to do when the claim is lost' -r -f -a "stop\t'Ask the command to end, then end it'
warn\t'Only say so'"
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l on-asked -d 'What to do when somebody asks the holder to stop' -r -f -a "stop\t'Ask the command to end, then end it'
warn\t'Only say so'
ignore\t'Nothing'"
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l grace -d 'How long the command may take to end when it is asked to' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -s E -l held-exit -d 'The exit status when the claim is held, instead of 75' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l confirm -d 'Read the claim again before an `ok` of the remote is believed'
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l strict-release -d 'Fail if the claim could not be released'
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand ask" -l reason -d 'Why, for the one who is asked' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand ask" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand ask" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand ask" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand ask" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand ask" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand ask" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand man" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand man" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand man" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand man" -l roff -d 'Print the page\'s source, for man(1)'
complete -c git-claim -n "__fish_git_claim_using_subcommand man" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand man" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-claim -n "__fish_git_claim_using_subcommand completions" -l remote -d 'Where the claims are: a remote\'s name, a URL or a path' -r -F
complete -c git-claim -n "__fish_git_claim_using_subcommand completions" -l timeout -d 'Give up on an exchange after this long (30s, 2m)' -r -f
complete -c git-claim -n "__fish_git_claim_using_subcommand completions" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal only'
always\t'Always'
never\t'Never'"
complete -c git-claim -n "__fish_git_claim_using_subcommand completions" -l json -d 'Print one JSON object instead of text'
complete -c git-claim -n "__fish_git_claim_using_subcommand completions" -s q -l quiet -d 'Print nothing but errors; the exit status is the answer'
complete -c git-claim -n "__fish_git_claim_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
