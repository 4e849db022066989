// npm run demo: the story, from the first worker to the verdict. Start reading here.
import { audit, type Report } from "./audit.js";
import { Fleet, type WorkerOrders } from "./fleet.js";
import { HELP, readOptions, type Options } from "./options.js";
import { openScreen, type Screen } from "./screen.js";
import { openStage, type Stage } from "./stage.js";
import { charge, jobs, LEASE_MS, mail, SLOTS, tasksOf, type Job, type Tasks } from "./terms.js";
import { isClean, verdict } from "./view.js";
import { Stalled, Watch } from "./watch.js";

const BATCHES = 20;
const LOWERED_SLOTS = 4;
const LOWERED_MS = 2_500;

/** Sets the stage, plays, audits, and clears up whatever happened. */
async function demo(options: Options): Promise<Report> {
  const screen = openScreen(process.stdout, process.env);
  const stage = await openStage(options.schema);
  const fleet = new Fleet(ordersOf(stage), (line) => watch.tell(line));
  const tasks = tasksOf(options.tasks);
  const watch = new Watch({ stage, fleet, screen, tasks });
  try {
    screen.print([`Sluice demo on ${stage.server}; leases of ${LEASE_MS / 1_000} s`, ""]);
    const seconds = await Promise.race([play(stage, fleet, watch, tasks), interrupted()]);
    await fleet.stop();
    return await conclude(stage, screen, seconds, options);
  } finally {
    screen.close();
    await fleet.stop();
    await stage.close();
  }
}

/** The story. Returns how long the tasks took. */
async function play(stage: Stage, fleet: Fleet, watch: Watch, tasks: Tasks): Promise<number> {
  await stage.log.write(
    Object.entries(SLOTS).map(([name, slots]) => ({ kind: "set", limits: [name], slots })),
  );
  const names = ["worker-1", "worker-2", "worker-3"];
  const workers = await watch.during(Promise.all(names.map((name) => fleet.start(name))));
  watch.tell(
    `workers started: ${workers.map(({ name, pid }) => `${name} (pid ${pid})`).join(", ")}`,
  );
  const begun = watch.seconds;
  try {
    const enqueued = await watch.during(enqueue(stage, tasks));
    watch.tell(`${enqueued} tasks were enqueued`);

    await watch.reach(0.2);
    await setGateway(stage, LOWERED_SLOTS);
    watch.tell(`gateway was lowered from ${SLOTS.gateway} to ${LOWERED_SLOTS}`);
    await watch.rest(LOWERED_MS, 0.2);
    await setGateway(stage, SLOTS.gateway);
    watch.tell(`gateway was raised to ${SLOTS.gateway} again`);

    await watch.reach(0.5);
    await watch.busy("worker-2");
    await fleet.kill("worker-2");
    await stage.log.write([{ kind: "dead", worker: "worker-2" }]);
    watch.tell("worker-2 was killed with kill -9");
    const { name, pid } = await watch.during(fleet.start("worker-4"));
    watch.tell(`${name} (pid ${pid}) started in its place`);

    await watch.finish();
    watch.tell("all tasks have ended");
  } catch (e) {
    if (!(e instanceof Stalled)) throw e;
    watch.tell(e.message);
  }
  return watch.seconds - begun;
}

/** Enqueues in batches of both types, and notes what was acknowledged: that must never be lost. */
async function enqueue({ sluice, log }: Stage, tasks: Tasks): Promise<number> {
  let count = 0;
  for (let batch = 0; batch < BATCHES; batch++) {
    const part = (of: number): Job[] =>
      jobs(Math.floor((of * batch) / BATCHES), Math.floor((of * (batch + 1)) / BATCHES));
    const charges = await sluice.enqueueMany(charge, part(tasks.charge));
    const mails = await sluice.enqueueMany(mail, part(tasks.mail));
    const ids = [...charges, ...mails];
    await log.write(ids.map((task) => ({ kind: "acknowledged", task })));
    count += ids.length;
  }
  return count;
}

async function setGateway({ sluice, log }: Stage, slots: number): Promise<void> {
  await log.write([{ kind: "asked", limits: ["gateway"], slots }]);
  await sluice.limits.set("gateway", { total: slots });
  await log.write([{ kind: "set", limits: ["gateway"], slots }]);
}

/** Audits the log and says what was found. */
async function conclude(
  stage: Stage,
  screen: Screen,
  seconds: number,
  { json }: Options,
): Promise<Report> {
  const report = audit(await stage.log.read());
  screen.print(["", ...verdict(report, seconds, screen.colors)]);
  const tasksPerSecond = Math.round(report.acknowledged / seconds);
  const figures = { ...report, seconds: Number(seconds.toFixed(3)), tasksPerSecond };
  if (json) screen.print([JSON.stringify(figures)]);
  return report;
}

const ordersOf = ({ url, schema, logSchema }: Stage): WorkerOrders => ({ url, schema, logSchema });

/** Ctrl-C still clears up. */
function interrupted(): Promise<never> {
  return new Promise((_, reject) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => reject(new Error(`ended by ${signal}`)));
    }
  });
}

// A reader that goes away, as in `npm run demo | head`, must not keep us from clearing up.
process.stdout.on("error", () => {});
try {
  const options = readOptions(process.argv.slice(2));
  if (options === null) process.stdout.write(HELP);
  else if (!isClean(await demo(options))) process.exitCode = 1;
} catch (e) {
  process.stderr.write(`demo: ${(e as Error).message}\n`);
  process.exitCode = 2;
}
// What an interrupted story has under way must not keep the process.
process.exit();
