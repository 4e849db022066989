import { linesOf, demandOf, loopWaitMs, permitHeldMs, sharesOf, transactionsPerSecond } from "./capacity.js";
import { planRanges, type PlanInput, type Setting } from "./input.js";
import { permitsInAll, PERMITS_MAX, processesByCpu, processesByPermits } from "./recommend.js";
import { count, number, percent, time } from "./words.js";

/** One line of the arithmetic: its name, how it is calculated, and the result. */
export interface Sum {
  readonly name: string;
  readonly formula: string;
  readonly value: number;
  readonly unit: string;
}

// A smaller value would print as zeros.
const TURN_MS_MIN = 0.05;

/** Explains how the recommended setting is calculated, line by line. */
export function arithmeticOf(input: PlanInput, setting: Setting): Sum[] {
  return [...tasksAndCores(input, setting), ...permits(input, setting), ...database(input, setting)];
}

function tasksAndCores(input: PlanInput, { processes }: Setting): Sum[] {
  const { durations, ioShare, engineMs } = input;
  const demand = demandOf(input);
  const [rate, mean] = [`${number(input.ratePerSecond)}/s`, time(durations.meanMs)];
  const script = `${mean} x ${percent(1 - ioShare)} JavaScript + ${time(engineMs)} engine`;
  return [
    { name: "in flight", formula: `${rate} x ${mean}`, value: demand.inFlight, unit: "tasks" },
    { name: "CPU", formula: `${rate} x (${script})`, value: demand.cores, unit: "cores" },
    { name: "processes", formula: whySoMany(input), value: processes, unit: "" },
  ];
}

function whySoMany(input: PlanInput): string {
  if (input.given.processes !== undefined) return "set by --processes";
  const byCpu = processesByCpu(input);
  if (processesByPermits(input, byCpu) > byCpu) {
    const most = `at most ${number(planRanges.processes.max)}`;
    return `${number(permitsInAll(input, byCpu))} permits / ${number(PERMITS_MAX)} per process, rounded up, ${most}`;
  }
  const cores = number(demandOf(input).cores);
  return `${cores} / ${percent(input.utilisation)}, rounded up, at most ${count(input.cores, "core")}`;
}

function permits(input: PlanInput, setting: Setting): Sum[] {
  const { ratePerSecond, durations, claimMs, engineMs, utilisation } = input;
  const waitMs = loopWaitMs(input, setting.processes);
  const heldMs = permitHeldMs(input, waitMs);
  const turn = waitMs < TURN_MS_MIN ? "" : ` + ${time(waitMs)} event loop wait`;
  const parts = `${time(durations.meanMs)} + ${time(engineMs)} engine + 2 x ${time(claimMs)} claim and settle${turn}`;
  const inAll = permitsInAll(input, setting.processes);
  const rate = `${number(ratePerSecond)}/s`;
  return [
    { name: "permit held", formula: parts, value: heldMs, unit: "ms" },
    {
      name: "permits",
      formula: `${rate} x ${time(heldMs)} / ${percent(utilisation)}`,
      value: inAll,
      unit: "in all",
    },
    {
      name: "each process",
      formula: `${number(inAll)} / ${setting.processes}, rounded up, at least 2, at most ${number(PERMITS_MAX)}`,
      value: setting.permits,
      unit: "permits",
    },
  ];
}

function database(input: PlanInput, setting: Setting): Sum[] {
  const { batch, claimMs, maxConnections } = input;
  const { processes, permits, claimLoops, connections } = setting;
  const lines = linesOf(claimLoops);
  const c = sharesOf(input, setting);
  const rule =
    batch > 1
      ? `claims are batched, up to ${batch} tasks: one loop is enough`
      : `a claim takes one task: a third to a half of ${count(permits, "permit")}`;
  const carried = claimMs === 0 ? [] : [(processes * lines * batch * 1000) / claimMs];
  return [
    { name: "claim loops", formula: rule, value: claimLoops, unit: "each" },
    ...carried.map((value) => ({
      name: "claim capacity",
      formula: `${processes} x ${lines} concurrent claims x ${batch} / ${time(claimMs)}`,
      value,
      unit: "tasks/s",
    })),
    {
      name: "connections",
      formula:
        `${c.claims} claim and settle + ${c.beat} heartbeat + ${c.keep} keeper + ` +
        `${c.handlers} handlers + ${c.api} API buffer`,
      value: connections,
      unit: "each",
    },
    ...transactions(input, setting),
    {
      name: "on the server",
      formula: `${processes} x ${connections}`,
      value: processes * connections,
      unit: `of ${maxConnections}`,
    },
  ];
}

function transactions(input: PlanInput, setting: Setting): Sum[] {
  const { meanMs } = input.durations;
  if (meanMs === 0) return [];
  const shared = `${setting.processes} x ${sharesOf(input, setting).handlers} handler connections`;
  return [
    {
      name: "transactions",
      formula: `${shared} / ${time(meanMs)}, if every task is in ctx.transaction all the time`,
      value: transactionsPerSecond(input, setting),
      unit: "tasks/s",
    },
  ];
}
