import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { aboutOf } from "./about.js";
import { castOf } from "./cast.js";
import { choose, measurementsOf } from "./choose.js";
import { Databases } from "./databases.js";
import { helpText } from "./help.js";
import { interleave } from "./interleave.js";
import { loadAll } from "./library/all.js";
import { parseOptions, UsageError, type Options } from "./options.js";
import { savePlans, type PlansSaved } from "./plans/save.js";
import { Progress } from "./progress.js";
import { jsonOf } from "./report/json.js";
import { tableOf } from "./report/table.js";
import { judge, verdictTable } from "./report/verdict.js";
import { writeReport } from "./report/write.js";
import type { About, Result } from "./result.js";
import { say } from "./say.js";
import { startServer } from "./server/server.js";
import { SETTINGS, type Server } from "./server/settings.js";
import { Stores } from "./stores.js";
import { targets } from "./targets.js";
import { workloadsOf } from "./workload/all.js";
import type { Bench, Workload } from "./workload.js";

/** What a run brought. */
interface Outcome {
  readonly results: readonly Result[];
  readonly about: About;
  readonly plans: PlansSaved | null;
}

const PLANS_PENDING_QUICK = 20_000;

const interrupted = new AbortController();
/** What has to be closed before the server is. */
const closing: (() => Promise<void>)[] = [];
process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  try {
    const options = parseOptions(argv);
    const workloads = workloadsOf(castOf(await loadAll()), options?.quick ?? false);
    if (options === null) {
      process.stdout.write(helpText(workloads));
      return 0;
    }
    const chosen = choose(options, workloads, targets);
    return conclude(options, await onServer(options, chosen));
  } catch (e) {
    if (interrupted.signal.aborted) return 130;
    if (!(e instanceof UsageError)) throw e;
    say(`${e.message}\nSee npm run bench -- --help`);
    return 2;
  }
}

async function onServer(options: Options, chosen: readonly Workload[]): Promise<Outcome> {
  const server = await startServer(options.url);
  const stop = stopOnce(server);
  try {
    const databases = await Databases.open(server.url);
    const stores = new Stores(databases, server.pid);
    closing.push(() => stores.close());
    announce(options, server, databases);
    try {
      const at = new Date();
      const results = await measureAll(options, stores, chosen);
      const plans = await plansOf(options, databases);
      return { results, about: aboutOf(options, at, server, stores, results), plans };
    } finally {
      await databases.close();
    }
  } finally {
    await stop();
  }
}

async function measureAll(options: Options, stores: Stores, chosen: readonly Workload[]): Promise<Result[]> {
  const bench = benchOf(options, stores);
  const measurements = measurementsOf(chosen, options.repetitions);
  say(`${chosen.length} workloads, ${measurements} measurements with their probes`);
  const progress = new Progress(measurements);
  const results: Result[] = [];
  for (const workload of chosen) {
    results.push(...(await interleave(bench, workload, options.repetitions, progress)));
    await stores.forget();
  }
  return results;
}

function benchOf({ quick, seconds, numbers, profile }: Options, stores: Stores): Bench {
  const folder = profile === null ? null : fromCaller(profile);
  if (folder !== null) mkdirSync(folder, { recursive: true });
  return { stores, seconds, quick, numbers, profile: folder, interrupted: interrupted.signal };
}

/** Beside the results, of a whole run. */
async function plansOf(options: Options, databases: Databases): Promise<PlansSaved | null> {
  const { command, out, only, subjects, quick } = options;
  const whole = command === "plans" || (only.length === 0 && subjects.length === 0);
  if (out === null || !whole) return null;
  const size = quick ? { pending: PLANS_PENDING_QUICK } : {};
  return savePlans(databases, fromCaller(out), size);
}

/** npm runs us in our own folder; a path is meant from where its caller stands. */
function fromCaller(path: string): string {
  return resolve(process.env["INIT_CWD"] ?? ".", path);
}

function announce(options: Options, server: Server, { version }: Databases): void {
  const settings = Object.entries(SETTINGS).map(([name, value]) => `${name} ${value}`);
  say(`${server.about}, version ${version}`);
  if (options.url === null) say(settings.join(", "));
  say(`Node ${process.version}, compiled JavaScript, ${options.repetitions} repetitions of about ${options.seconds} s`);
  if (options.quick) say("--quick: only shows that the bench works; its numbers prove nothing");
}

/** Also when we are told to end: nobody else would stop the servers. */
function stopOnce(server: Server): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stopAll = async (): Promise<void> => {
    await Promise.allSettled(closing.map((close) => close()));
    await server.stop();
  };
  const stop = (): Promise<void> => (stopping ??= stopAll());
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      interrupted.abort();
      say("stopping");
      // Worker processes end with us: their channel closes.
      void stop().finally(() => process.exit(130));
    });
  }
  return stop;
}

function conclude({ command, json, out }: Options, { results, about, plans }: Outcome): number {
  if (command === "plans") {
    process.stdout.write(`\n${plans!.summary}`);
    return plans!.findings.length === 0 ? 0 : 1;
  }
  process.stdout.write(json ? jsonOf(results) : `\n${tableOf(results)}`);
  const verdicts = judge(results, targets);
  if (out !== null) {
    const folder = fromCaller(out);
    writeReport(folder, results, about, { verdicts, ...(plans && { plans: plans.summary }) });
    say(`\nthe report is in ${folder}`);
  }
  if (command === "run") return 0;
  const table = `\n${verdictTable(verdicts)}`;
  if (json) process.stderr.write(table);
  else process.stdout.write(table);
  const reached = verdicts.length > 0 && verdicts.every((v) => v.passed);
  return reached && (plans === null || plans.findings.length === 0) ? 0 : 1;
}
