import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import type { TaskContract } from "../../../src/client.js";
import type { WaitingJob } from "./source.js";

export const HELP = `npx tsx examples/migrate/pg-boss.ts --queue NAME --task MODULE#EXPORT [options]

Moves the waiting jobs of a pg-boss queue to Sluice. Both must be in the same database.

  --queue NAME           the pg-boss queue
  --task MODULE#EXPORT   the task contract that the jobs become, e.g. ./tasks.ts#sendMail
  --input MODULE#EXPORT  a function (job) => input; default: the job's data
  --url URL              the database; default: DATABASE_URL
  --pgboss-schema NAME   the schema of pg-boss; default: pgboss
  --schema NAME          the schema of Sluice; default: sluice
  --batch N              jobs per transaction, 1 to 10000; default: 500
  --follow               keep moving what arrives, until SIGINT or SIGTERM
  --while-active         move although the queue's policy counts jobs that are active now
  --dry-run              count the jobs and move none
  --help                 this text

Jobs that are active stay with pg-boss. So do jobs of a flow, and jobs whose input Sluice refuses.
It exits with 0 if it moved all others, 1 if it failed or inputs were refused, 2 if used wrongly.
It is safe to run again at any time.
`;

export interface Options {
  readonly url: string;
  readonly queue: string;
  readonly task: TaskContract;
  readonly inputOf: (job: WaitingJob) => unknown;
  readonly pgBossSchema: string;
  readonly schema: string | undefined;
  readonly batch: number;
  readonly follow: boolean;
  readonly whileActive: boolean;
  readonly dryRun: boolean;
}

/** The command line is wrong. */
export class UsageError extends Error {}

/** What MODULE#EXPORT names; the module is looked for from the working directory. */
async function load(flag: string, named: string): Promise<unknown> {
  const [file, name] = named.split("#");
  if (!file || !name) throw new UsageError(`--${flag} must be MODULE#EXPORT, not "${named}"`);
  const module = (await import(pathToFileURL(resolve(file)).href)) as Record<string, unknown>;
  if (module[name] === undefined) throw new UsageError(`${file} does not export "${name}"`);
  return module[name];
}

/** Reads the command line; null asks for help. */
export async function readOptions(args: string[]): Promise<Options | null> {
  const { values } = parsed(args);
  if (values.help) return null;
  const { queue, task, input } = values;
  if (queue === undefined || task === undefined)
    throw new UsageError("--queue and --task are needed");
  const batch = /^\d{1,5}$/.test(values.batch) ? Number(values.batch) : 0;
  if (batch < 1 || batch > 10_000) throw new UsageError("--batch must be a number from 1 to 10000");
  const inputOf =
    input === undefined ? (job: WaitingJob) => job.data ?? undefined : await load("input", input);
  if (typeof inputOf !== "function") throw new UsageError("--input must name a function");
  const url = values.url ?? process.env["DATABASE_URL"];
  if (url === undefined) throw new UsageError("--url or DATABASE_URL is needed");
  return {
    url,
    queue,
    task: (await load("task", task)) as TaskContract,
    inputOf: inputOf as Options["inputOf"],
    pgBossSchema: values["pgboss-schema"],
    schema: values.schema,
    batch,
    follow: values.follow,
    whileActive: values["while-active"],
    dryRun: values["dry-run"],
  };
}

function parsed(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        queue: { type: "string" },
        task: { type: "string" },
        input: { type: "string" },
        url: { type: "string" },
        "pgboss-schema": { type: "string", default: "pgboss" },
        schema: { type: "string" },
        batch: { type: "string", default: "500" },
        follow: { type: "boolean", default: false },
        "while-active": { type: "boolean", default: false },
        "dry-run": { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (e) {
    throw new UsageError((e as Error).message);
  }
}
