import type { Place } from "./tree.js";

/** The completion script for bash. */
export function bashScript(places: readonly Place[]): string {
  return `# bash completion of sluice, printed by: sluice completion bash
_sluice() {
  local current=\${COMP_WORDS[COMP_CWORD]} at="sluice" value="" words="" word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ -n $value ]]; then value="" && continue; fi
    case "$at $word" in
${places.flatMap(steps).join("\n")}
    esac
  done
  case "\${value:-$at}" in
${places.flatMap(choices).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _sluice sluice`;
}

/** How a word moves on: to another command, or to the value of an option. */
function steps({ path, commands, valueOptions }: Place): string[] {
  return [
    ...commands.map(({ word }) => `      "${path} ${word}") at="$at $word" ;;`),
    ...valueOptions.map(({ flag }) => `      "${path} ${flag}") value="$at $word" ;;`),
  ];
}

function choices({ path, commands, values, options, valueOptions }: Place): string[] {
  const words = [...commands, ...values, ...options].map(({ word }) => word);
  return [
    `    "${path}") words="${words.join(" ")}" ;;`,
    ...valueOptions
      .filter((option) => option.choices.length > 0)
      .map((option) => `    "${path} ${option.flag}") words="${option.choices.join(" ")}" ;;`),
  ];
}
