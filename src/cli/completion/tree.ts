import type { Command } from "commander";

/** A word that can be typed, and what it does. */
interface Word {
  readonly word: string;
  readonly summary: string;
}

/** An option that takes a value. choices: the values that it takes, empty if any. */
interface ValueOption {
  readonly flag: string;
  readonly choices: readonly string[];
}

/** What can follow a command. path: the words before, such as "sluice limits". */
export interface Place {
  readonly path: string;
  /** Words that lead to another place: commands. */
  readonly commands: readonly Word[];
  /** The values of its first argument, where they are known. */
  readonly values: readonly Word[];
  readonly options: readonly Word[];
  readonly valueOptions: readonly ValueOption[];
}

/** Lists what can follow each command of the tree, the command itself first. */
export function placesOf(command: Command, before = ""): Place[] {
  const path = `${before}${command.name()}`;
  const help = command.createHelp();
  const options = help.visibleOptions(command).filter(({ long }) => long !== undefined);
  const choices = command.registeredArguments[0]?.argChoices ?? [];
  const place: Place = {
    path,
    commands: help
      .visibleCommands(command)
      .map((each) => ({ word: each.name(), summary: each.summary() || each.description() })),
    values: choices.map((word) => ({ word, summary: "" })),
    options: options.map(({ long, description }) => ({ word: long!, summary: description })),
    valueOptions: options
      .filter(({ required, optional }) => required || optional)
      .map(({ long, argChoices }) => ({ flag: long!, choices: argChoices ?? [] })),
  };
  return [place, ...command.commands.flatMap((below) => placesOf(below, `${path} `))];
}
