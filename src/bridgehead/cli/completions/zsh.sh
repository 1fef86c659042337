#compdef bridgehead
# zsh completion for bridgehead. In ~/.zshrc, after compinit:  source <(bridgehead completion zsh)
_bridgehead() {
  local line word
  local -a found
  for line in "${(@f)$(BRIDGEHEAD_COMPLETE=1 "${words[1]}" "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == ":paths" ]]; then
      _files
      return
    fi
    [[ -z $line ]] && continue
    word=${line%%$'\t'*}
    found+=("${word//:/\\:}:${line#*$'\t'}")
  done
  _describe -V bridgehead found
}
compdef _bridgehead bridgehead
