import { availableParallelism, cpus, totalmem } from "node:os";
import type { Options } from "./options.js";
import type { About, Result } from "./result.js";
import type { Server } from "./server/settings.js";
import { SETTINGS } from "./server/settings.js";
import type { Stores } from "./stores.js";

const MB = 1024 * 1024;

/** What a reader must know about a run. */
export function aboutOf(options: Options, at: Date, server: Server, stores: Stores, results: readonly Result[]): About {
  const { repetitions, seconds, quick, url } = options;
  const versions = results.map(({ subject }) => [subject.library, subject.version] as const);
  return {
    at: at.toISOString(),
    command: `npm run bench -- ${process.argv.slice(2).map(withoutPassword).join(" ")}`.trim(),
    node: process.version,
    postgres: `${stores.databases.version} (${server.about})`,
    redis: stores.redisVersion,
    settings: url === null ? SETTINGS : {},
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    memoryMb: Math.round(totalmem() / MB),
    repetitions,
    seconds,
    quick,
    versions: Object.fromEntries(versions),
  };
}

/** A report is shown around. */
function withoutPassword(argument: string): string {
  return argument.replace(/\/\/[^@/]*@/, "//...@");
}
