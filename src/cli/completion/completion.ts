import { Argument, Command } from "commander";
import { bashScript } from "./bash.js";
import { placesOf } from "./tree.js";
import { zshScript } from "./zsh.js";

const SCRIPTS = { bash: bashScript, zsh: zshScript };

/** `sluice completion`: prints a completion script, made from the commands themselves. */
export function completionCommand(): Command {
  return new Command("completion")
    .summary("print a script that completes commands in bash or zsh")
    .description("Prints a script that lets bash or zsh complete the commands and options of sluice.")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .addHelpText(
      "after",
      `
Examples:
  $ source <(sluice completion bash)
  $ sluice completion bash > ~/.local/share/bash-completion/completions/sluice
  $ sluice completion zsh > ~/.zfunc/_sluice   # a folder of $fpath`,
    )
    .action((shell: keyof typeof SCRIPTS, _flags: object, command: Command) => {
      process.stdout.write(`${SCRIPTS[shell](placesOf(command.parent!))}\n`);
    });
}
