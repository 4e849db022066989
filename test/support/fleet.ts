import { onTestFinished } from "vitest";
import { spawnTs, type SpawnedTs } from "./process.js";

/** One worker process of a test. */
export interface Member {
  readonly name: string;
  readonly process: SpawnedTs;
  /** kill -9; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGSTOP: the process freezes without noticing. */
  freeze(): void;
  /** SIGCONT. */
  thaw(): void;
  /** SIGTERM; resolves with its exit code. */
  end(): Promise<number | null>;
}

/** Starts a process of the program and waits until it says that it is ready. */
export async function startMember(program: string, name: string, config: object): Promise<Member> {
  const process = spawnTs(program, [], { FLEET_CONFIG: JSON.stringify({ ...config, name }) });
  // A frozen process does not handle SIGTERM, and a failed test does not resume it.
  onTestFinished(async () => void (await process.kill("SIGKILL")));
  await process.line((line) => line === "ready");
  return {
    name,
    process,
    kill: async () => void (await process.kill("SIGKILL")),
    freeze: () => void process.child.kill("SIGSTOP"),
    thaw: () => void process.child.kill("SIGCONT"),
    end: () => process.kill("SIGTERM"),
  };
}

/** Starts this many processes at once, each with its own configuration. */
export function startFleet(program: string, size: number, configOf: (i: number) => object): Promise<Member[]> {
  return Promise.all(Array.from({ length: size }, (_, i) => startMember(program, `w${i}`, configOf(i))));
}
