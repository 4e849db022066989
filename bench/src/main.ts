import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { Databases } from "./databases.js";
import { helpText } from "./help.js";
import { interleave, type Result } from "./interleave.js";
import { parseOptions, UsageError, type Options } from "./options.js";
import { jsonOf } from "./report/json.js";
import { tableOf } from "./report/table.js";
import { judge, verdictTable } from "./report/verdict.js";
import { say } from "./say.js";
import { startServer } from "./server/server.js";
import { SETTINGS, type Server } from "./server/settings.js";
import { full, quick } from "./sizes.js";
import { targets } from "./targets.js";
import { workloads } from "./workload/all.js";
import type { Bench, Workload } from "./workload.js";

let interrupted = false;
process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  try {
    const options = parseOptions(argv);
    if (options === null) {
      process.stdout.write(helpText(workloads));
      return 0;
    }
    const chosen = choose(options);
    return conclude(options, await measureAll(options, chosen));
  } catch (e) {
    if (interrupted) return 130;
    if (!(e instanceof UsageError)) throw e;
    say(`${e.message}\nnpm run bench -- --help tells more`);
    return 2;
  }
}

function choose({ command, only }: Options): readonly Workload[] {
  const known = workloads.map((w) => w.name);
  const unknown = only.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new UsageError(`no workload ${unknown.join(", ")}: there are ${known.join(", ")}`);
  }
  return workloads
    .filter((w) => only.length === 0 || only.includes(w.name))
    .filter((w) => command === "drain" || targets.some((t) => t.workload === w.name));
}

async function measureAll(options: Options, chosen: readonly Workload[]): Promise<Result[]> {
  const server = await startServer(options.url);
  const stop = stopOnce(server);
  try {
    const databases = await Databases.open(server.url);
    announce(options, server, databases);
    try {
      const bench = benchOf(options, databases);
      const results: Result[] = [];
      for (const workload of chosen)
        results.push(...(await interleave(bench, workload, options.repetitions)));
      return results;
    } finally {
      await databases.close();
    }
  } finally {
    await stop();
  }
}

function benchOf(options: Options, databases: Databases): Bench {
  const profile = options.profile === null ? null : resolve(options.profile);
  if (profile !== null) mkdirSync(profile, { recursive: true });
  return { sizes: options.quick ? quick : full, databases, worker: options.worker, profile };
}

function announce(options: Options, server: Server, { version }: Databases): void {
  const settings = Object.entries(SETTINGS).map(([name, value]) => `${name} ${value}`);
  say(`${server.about}, version ${version}`);
  if (options.url === null) say(settings.join(", "));
  say(`Node ${process.version}, compiled JavaScript, ${options.repetitions} repetitions`);
  if (options.quick) say("--quick: shows that it works; its numbers prove nothing");
}

/** Also when we are told to end: nobody else would stop the server. */
function stopOnce(server: Server): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= server.stop());
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      interrupted = true;
      say("stopping");
      // Worker processes end with us: their channel closes.
      void stop().finally(() => process.exit(130));
    });
  }
  return stop;
}

function conclude({ command, json }: Options, results: readonly Result[]): number {
  if (json) process.stdout.write(jsonOf(results));
  else process.stdout.write(`\n${tableOf(results)}`);
  if (command === "drain") return 0;
  const verdicts = judge(results, targets);
  const table = `\n${verdictTable(verdicts)}`;
  if (json) process.stderr.write(table);
  else process.stdout.write(table);
  return verdicts.length > 0 && verdicts.every((v) => v.passed) ? 0 : 1;
}
