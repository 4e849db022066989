import { Command } from "commander";
import { Client } from "../client/client.js";
import { databaseSettings } from "./database.js";

/** The flags of every verb. */
export interface Flags {
  readonly url?: string;
  readonly schema?: string;
  readonly json?: boolean;
}

/** The help texts of a verb. */
export interface Help {
  readonly summary: string;
  readonly description: string;
  readonly examples: readonly string[];
  /** What --json prints. */
  readonly json: string;
}

/** Creates a verb with the flags that all database verbs share. below: the words before it. */
export function verb(name: string, help: Help, below = ""): Command {
  const { summary, description, examples, json } = help;
  const shown = examples.map((example) => `  $ sluice ${below}${example}`).join("\n");
  return (
    new Command(name)
      .summary(summary)
      // Commander wraps lines to the width of the terminal.
      .description(description.replaceAll("\n", " "))
      .option("--url <url>", "the database, postgres://...; default: DATABASE_URL")
      .option("--schema <name>", 'the schema; default: SLUICE_SCHEMA, else "sluice"')
      .option("--json", "print JSON")
      .addHelpText("after", `\nExamples:\n${shown}\n\nThe JSON: ${json}`)
  );
}

/** Connects, runs `use`, and closes. Does not migrate the schema. */
export async function withClient<T>({ url, schema }: Flags, use: (client: Client) => Promise<T>): Promise<T> {
  const settings = await databaseSettings({
    ...(url !== undefined && { url }),
    ...(schema !== undefined && { schema }),
  });
  const found = { url: settings.url!, schema: settings.schema };
  const client = await Client.connect({ ...found, migrate: false });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** Creates a command that consists of verbs. */
export function group(
  name: string,
  { summary, description, examples }: Omit<Help, "json">,
  verbs: readonly Command[],
): Command {
  const command = new Command(name).summary(summary).description(description.replaceAll("\n", " "));
  for (const each of verbs) command.addCommand(each);
  const shown = examples.map((example) => `  $ sluice ${name} ${example}`).join("\n");
  return command.addHelpText("after", `\nExamples:\n${shown}\n\nsluice ${name} <verb> --help tells more about each.`);
}
