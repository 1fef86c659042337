# bash completion for bridgehead. In ~/.bashrc:  source <(bridgehead completion bash)
_bridgehead_complete() {
  local line cur=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  # bash parts words at "=", so `--option=val` is three of them.
  if [[ $cur == "=" ]]; then
    words=("${words[@]:0:COMP_CWORD-2}" "")
    cur=
  elif [[ COMP_CWORD -ge 3 && ${COMP_WORDS[COMP_CWORD-1]} == "=" ]]; then
    words=("${words[@]:0:COMP_CWORD-2}" "$cur")
  fi
  while IFS= read -r line; do
    if [[ $line == ":paths" ]]; then
      compopt -o default
      COMPREPLY=()
      return
    fi
    COMPREPLY+=("${line%%$'\t'*}")
  done < <(BRIDGEHEAD_COMPLETE=1 "$1" "${words[@]}" 2>/dev/null)
}
complete -o nosort -F _bridgehead_complete bridgehead
