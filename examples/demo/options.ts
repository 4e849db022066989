import { parseArgs } from "node:util";

export interface Options {
  readonly tasks: number;
  readonly schema: string | undefined;
  readonly json: boolean;
}

export const HELP = `npm run demo -- [options]

Three worker processes run a few thousand short tasks under order keys and three limits. Halfway one
worker is killed with kill -9 and another takes its place; a limit is lowered and raised again. Then
the log of the handlers is audited: no task may be lost, doubled, over a limit or out of order.

  --tasks N      number of tasks, 200 to 100000; default 3000
  --schema NAME  the schema for the queue; default: a new one, dropped at the end.
                 An existing schema is used as it is and kept: do not name one you work with
  --json         print all figures as JSON in the last line
  --help         print this text

It uses the database at DATABASE_URL, or starts a temporary PostgreSQL.
Output is plain if standard output is not a terminal, or if NO_COLOR or CI is set.
It exits with 0 if the audit finds nothing, 1 if it does, 2 if the demo could not run.
`;

const TASKS_MIN = 200;
const TASKS_MAX = 100_000;

/** Reads the command line; null asks for help. Throws with a sentence for whoever typed it. */
export function readOptions(args: string[]): Options | null {
  const { values } = parseArgs({
    args,
    options: {
      tasks: { type: "string", default: "3000" },
      schema: { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return null;
  const tasks = /^\d{1,6}$/.test(values.tasks) ? Number(values.tasks) : Number.NaN;
  if (!(tasks >= TASKS_MIN && tasks <= TASKS_MAX)) {
    throw new Error(`--tasks must be a number from ${TASKS_MIN} to ${TASKS_MAX}`);
  }
  return { tasks, schema: values.schema, json: values.json };
}
