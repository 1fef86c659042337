#compdef bridgehead
# zsh completion for bridgehead. In ~/.zshrc, after compinit:  source <(bridgehead completion zsh)
_bridgehead() {
  local line word tab=$'\t'
  local -a found
  for line in "${(@f)$(BRIDGEHEAD_COMPLETE=1 "${words[1]}" "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == ":paths" ]]; then
      _files
      return
    fi
    [[ -z $line ]] && continue
    word=${line%%$tab*}
    found+=("${word//:/\\:}:${line#*$tab}")
  done
  _describe bridgehead found
}
compdef _bridgehead bridgehead
