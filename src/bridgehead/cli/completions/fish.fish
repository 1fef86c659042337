# fish completion for bridgehead. In ~/.config/fish/config.fish:  bridgehead completion fish | source
function __bridgehead_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (BRIDGEHEAD_COMPLETE=1 $words[1] $words[2..-1] 2>/dev/null)
    if test "$found" = ":paths"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete -c bridgehead -f -a '(__bridgehead_complete)'
