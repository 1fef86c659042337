# fish completion for bridgehead. In ~/.config/fish/config.fish:  bridgehead completion fish | source
function __bridgehead_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l found (env BRIDGEHEAD_COMPLETE=1 $program $words "$typed" 2>/dev/null)
    if test "$found" = ":paths"
        __fish_complete_path "$typed"
    else if set -q found[1]
        printf '%s\n' $found
    end
end
complete -c bridgehead -f -a '(__bridgehead_complete)'
