"""The scripts of `specsweep completion`: each asks `specsweep completion --words` what may stand at the cursor."""

from __future__ import annotations

from collections.abc import Mapping

BASH = r"""# Completes specsweep in bash:  source <(specsweep completion bash)
_specsweep() {
  # bash cuts words at = and :, so the pieces are joined again.
  local -a words=() found=()
  local i word line last="" current prefix
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((${#words[@]})) && { [[ $word == [=:]* ]] || [[ $last == *[=:] ]]; }; then
      last+=$word
      words[${#words[@]} - 1]=$last
    else
      last=$word
      words+=("$word")
    fi
  done
  current=$last
  prefix=${current%"${current##*[=:]}"}
  while IFS= read -r line; do
    line=${line#"$prefix"}
    [[ $line == *[=./] ]] || line+=" "
    found+=("$line")
  done < <("$1" completion --words "${words[@]}" 2>/dev/null)
  COMPREPLY=("${found[@]}")
}
complete -o default -o nospace -F _specsweep specsweep
"""

ZSH = r"""#compdef specsweep
# Completes specsweep in zsh, after compinit:  source <(specsweep completion zsh)
_specsweep() {
  local -a found open whole
  local line
  found=("${(@f)$("${(Q)words[1]}" completion --words "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  for line in "${found[@]}"; do
    [[ -z $line ]] && continue
    if [[ $line == *[=./] ]]; then open+=("$line"); else whole+=("$line"); fi
  done
  if (( ! $#open && ! $#whole )); then
    _files
    return
  fi
  (( $#open )) && compadd -S '' -- "${open[@]}"
  (( $#whole )) && compadd -- "${whole[@]}"
}
compdef _specsweep specsweep
"""

FISH = r"""# Completes specsweep in fish:  specsweep completion fish | source
function __specsweep_candidates
    set -l before (commandline -opc)
    set -l found ($before[1] completion --words $before[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -eq 0
        __fish_complete_path (commandline -ct)
    else
        string join \n -- $found
    end
end
complete -c specsweep -f -a '(__specsweep_candidates)'
"""

SCRIPTS: Mapping[str, str] = {"bash": BASH, "zsh": ZSH, "fish": FISH}
