import { parseArgs } from "node:util";

export interface Options {
  readonly command: "run" | "accept" | "plans";
  readonly quick: boolean;
  readonly json: boolean;
  readonly repetitions: number;
  readonly seconds: number;
  /** Names of workloads; empty: all. */
  readonly only: readonly string[];
  /** Names, or parts of names, of subjects; empty: all. */
  readonly subjects: readonly string[];
  readonly url: string | null;
  readonly profile: string | null;
  /** Where reports and plans go; null: nowhere. */
  readonly out: string | null;
  /** Numbers of our worker. */
  readonly numbers: Readonly<Record<string, number>>;
}

/** A mistake on the command line. */
export class UsageError extends Error {}

const FLAGS = {
  quick: { type: "boolean" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
  reps: { type: "string" },
  seconds: { type: "string" },
  only: { type: "string", multiple: true },
  subjects: { type: "string", multiple: true },
  url: { type: "string" },
  profile: { type: "string" },
  out: { type: "string" },
  worker: { type: "string" },
} as const;

const SECONDS = "3";
const SECONDS_QUICK = "0.5";

/** What the command line asks for; null: for help. */
export function parseOptions(argv: readonly string[]): Options | null {
  const { values, positionals } = parsed(argv);
  if (values.help === true || positionals[0] === "help") return null;
  const [command = "run", ...more] = positionals;
  if (!isCommand(command) || more.length > 0) {
    throw new UsageError("there are three commands: run (the default), accept and plans");
  }
  if (command === "plans" && values.out === undefined)
    throw new UsageError("plans needs --out DIR, the folder to save them in");
  const quick = values.quick ?? false;
  return {
    command,
    quick,
    json: values.json ?? false,
    repetitions: repetitionsOf(values.reps ?? (quick ? "1" : "3")),
    seconds: secondsOf(values.seconds ?? (quick ? SECONDS_QUICK : SECONDS)),
    only: namesOf(values.only),
    subjects: namesOf(values.subjects),
    url: values.url ?? null,
    profile: values.profile ?? null,
    out: values.out ?? null,
    numbers: numbersOf(values.worker),
  };
}

function isCommand(word: string): word is Options["command"] {
  return word === "run" || word === "accept" || word === "plans";
}

function parsed(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: FLAGS, allowPositionals: true });
  } catch (e) {
    throw new UsageError((e as Error).message);
  }
}

function namesOf(lists: readonly string[] | undefined): string[] {
  return (lists ?? []).flatMap((names) => names.split(",")).map((name) => name.trim());
}

function repetitionsOf(text: string): number {
  const n = Number(text);
  if (!Number.isInteger(n) || n < 1 || n > 99) throw new UsageError("--reps must be from 1 to 99");
  return n;
}

function secondsOf(text: string): number {
  const n = Number(text);
  if (!(n >= 0.1 && n <= 600)) throw new UsageError("--seconds must be from 0.1 to 600");
  return n;
}

/** "claimBatchSize=100,claimLoops=2". The worker itself says which names and numbers it takes. */
function numbersOf(text: string | undefined): Options["numbers"] {
  if (text === undefined) return {};
  return Object.fromEntries(
    text.split(",").map((pair) => {
      const [name, value] = pair.split("=");
      if (name === undefined || value === undefined || !Number.isFinite(Number(value))) {
        throw new UsageError(`--worker must be name=number, not ${pair}`);
      }
      return [name, Number(value)];
    }),
  );
}
