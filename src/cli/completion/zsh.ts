import type { Place } from "./tree.js";

/** The completion script for zsh. */
export function zshScript(places: readonly Place[]): string {
  return `#compdef sluice
# zsh completion of sluice, printed by: sluice completion zsh
_sluice() {
  local at="sluice" value="" word i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    if [[ -n $value ]]; then value="" && continue; fi
    case "$at $word" in
${places.flatMap(steps).join("\n")}
    esac
  done
  case "\${value:-$at}" in
${places.flatMap(choices).join("\n")}
  esac
  if (( $#found )); then _describe 'sluice' found; else _files; fi
}
if [[ $funcstack[1] == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice; fi`;
}

/** How a word moves on: to another command, or to the value of an option. */
function steps({ path, commands, valueOptions }: Place): string[] {
  return [
    ...commands.map(({ word }) => `      ("${path} ${word}") at="$at $word" ;;`),
    ...valueOptions.map(({ flag }) => `      ("${path} ${flag}") value="$at $word" ;;`),
  ];
}

function choices({ path, commands, values, options, valueOptions }: Place): string[] {
  const words = [...commands, ...values, ...options].map(({ word, summary }) => described(word, summary));
  return [
    `    ("${path}") found=(${words.join(" ")}) ;;`,
    ...valueOptions
      .filter((option) => option.choices.length > 0)
      .map((option) => {
        const shown = option.choices.map((word) => described(word, "")).join(" ");
        return `    ("${path} ${option.flag}") found=(${shown}) ;;`;
      }),
  ];
}

/** A word with its description as _describe takes it: in single quotes, split by a colon. */
function described(word: string, summary: string): string {
  const escaped = (text: string): string => text.replaceAll(":", "\\:");
  const item = summary === "" ? escaped(word) : `${escaped(word)}:${escaped(summary)}`;
  return `'${item.replaceAll("'", "'\\''")}'`;
}
