import { onTestFinished } from "vitest";
import type { Report } from "../../examples/demo/audit.js";
import { spawnTs, type SpawnedTs } from "../support/process.js";

/** One run of the demo, from outside. */
export interface Played {
  readonly process: SpawnedTs;
  /** Resolves when the demo has ended by itself. */
  readonly end: Promise<Ended>;
}

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  /** The last line, parsed. Needs --json. */
  readonly report: () => Report & { readonly seconds: number; readonly tasksPerSecond: number };
}

/** Runs the demo without the variables by which a terminal or CI changes its output. */
export function play(args: readonly string[], env: NodeJS.ProcessEnv = {}): Played {
  const plain = { CI: undefined, NO_COLOR: undefined, FORCE_COLOR: undefined };
  const process = spawnTs("examples/demo/main.ts", args, { ...plain, ...env });
  onTestFinished(async () => void (await process.kill("SIGKILL")));
  let [out, err] = ["", ""];
  process.child.stdout!.on("data", (chunk: Buffer) => (out += chunk.toString()));
  process.child.stderr!.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const report = (): ReturnType<Ended["report"]> =>
    JSON.parse(out.trimEnd().split("\n").at(-1)!) as ReturnType<Ended["report"]>;
  return { process, end: process.exit.then((code) => ({ code, out, err, report })) };
}
