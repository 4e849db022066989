import { parseArgs } from "node:util";
import type { Bench } from "./workload.js";

export interface Options {
  readonly command: "drain" | "accept";
  readonly quick: boolean;
  readonly json: boolean;
  readonly repetitions: number;
  /** Names of workloads; empty: all. */
  readonly only: readonly string[];
  readonly url: string | null;
  readonly profile: string | null;
  readonly worker: Bench["worker"];
}

/** A mistake on the command line. */
export class UsageError extends Error {}

const FLAGS = {
  quick: { type: "boolean" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
  reps: { type: "string" },
  only: { type: "string", multiple: true },
  url: { type: "string" },
  profile: { type: "string" },
  worker: { type: "string" },
} as const;

/** What the command line asks for; null: for help. */
export function parseOptions(argv: readonly string[]): Options | null {
  const { values, positionals } = parsed(argv);
  if (values.help === true || positionals[0] === "help") return null;
  const [command, ...more] = positionals;
  if ((command !== "drain" && command !== "accept") || more.length > 0) {
    throw new UsageError("give one command: drain or accept");
  }
  const quick = values.quick ?? false;
  return {
    command,
    quick,
    json: values.json ?? false,
    repetitions: repetitionsOf(values.reps ?? (quick ? "1" : "3")),
    only: (values.only ?? []).flatMap((names) => names.split(",")),
    url: values.url ?? null,
    profile: values.profile ?? null,
    worker: workerOf(values.worker),
  };
}

function parsed(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: FLAGS, allowPositionals: true });
  } catch (e) {
    throw new UsageError((e as Error).message);
  }
}

function repetitionsOf(text: string): number {
  const n = Number(text);
  if (!Number.isInteger(n) || n < 1 || n > 99) throw new UsageError("--reps wants 1 to 99");
  return n;
}

/** "claimBatchSize=100,claimLoops=2". The worker itself says which names and numbers it takes. */
function workerOf(text: string | undefined): Bench["worker"] {
  if (text === undefined) return {};
  return Object.fromEntries(
    text.split(",").map((pair) => {
      const [name, value] = pair.split("=");
      if (name === undefined || value === undefined || !Number.isFinite(Number(value))) {
        throw new UsageError(`--worker wants name=number, not ${pair}`);
      }
      return [name, Number(value)];
    }),
  );
}
