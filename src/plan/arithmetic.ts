import { connectionsOf } from "../config/connections.js";
import { linesOf } from "./capacity.js";
import { demandOf, loopWaitMs, permitHeldMs } from "./demand.js";
import type { PlanInput, Setting } from "./input.js";
import { permitsInAll } from "./recommend.js";
import { count, number, percent, time } from "./words.js";

/** One line of the arithmetic: what it is, how it comes about, and what comes out. */
export interface Sum {
  readonly name: string;
  readonly formula: string;
  readonly value: number;
  readonly unit: string;
}

// What is less would be a line of zeros.
const TURN_MS_MIN = 0.05;

/** How the recommended setting comes about, line by line. */
export function arithmeticOf(input: PlanInput, setting: Setting): Sum[] {
  return [
    ...tasksAndCores(input, setting),
    ...permits(input, setting),
    ...database(input, setting),
  ];
}

function tasksAndCores(input: PlanInput, { processes }: Setting): Sum[] {
  const { durations, ioShare, engineMs, utilisation, cores } = input;
  const demand = demandOf(input);
  const [rate, mean] = [`${number(input.ratePerSecond)}/s`, time(durations.meanMs)];
  const script = `${mean} x ${percent(1 - ioShare)} JavaScript + ${time(engineMs)} engine`;
  const why =
    input.given.processes === undefined
      ? `${number(demand.cores)} / ${percent(utilisation)}, rounded up, at most ${count(cores, "core")}`
      : "as given";
  return [
    { name: "in flight", formula: `${rate} x ${mean}`, value: demand.inFlight, unit: "tasks" },
    { name: "CPU", formula: `${rate} x (${script})`, value: demand.cores, unit: "cores" },
    { name: "processes", formula: why, value: processes, unit: "" },
  ];
}

function permits(input: PlanInput, setting: Setting): Sum[] {
  const { ratePerSecond, durations, claimMs, engineMs, utilisation } = input;
  const waitMs = loopWaitMs(input, setting.processes);
  const heldMs = permitHeldMs(input, waitMs);
  const turn = waitMs < TURN_MS_MIN ? "" : ` + ${time(waitMs)} for its turn`;
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
      formula: `${number(inAll)} / ${setting.processes}, rounded up, at least 2`,
      value: setting.permits,
      unit: "permits",
    },
  ];
}

function database(input: PlanInput, setting: Setting): Sum[] {
  const { batch, claimMs, apiConnections, handlerConnections, maxConnections } = input;
  const { processes, permits, claimLoops, connections } = setting;
  const lines = linesOf(claimLoops);
  const c = connectionsOf({
    claimLoops,
    dbConnections: connections,
    apiConnections,
    handlerConnections,
  });
  const rule =
    batch > 1
      ? `claims of up to ${batch} are batched: one is enough`
      : `claims of one task: a third to a half of ${count(permits, "permit")}`;
  const carried = claimMs === 0 ? [] : [(processes * lines * batch * 1000) / claimMs];
  return [
    { name: "claim loops", formula: rule, value: claimLoops, unit: "each" },
    ...carried.map((value) => ({
      name: "claims carry",
      formula: `${processes} x ${lines} lines x ${batch} / ${time(claimMs)}`,
      value,
      unit: "tasks/s",
    })),
    {
      name: "connections",
      formula: `${c.lines} claim and settle + ${c.beat} beat + ${c.keep} keep + ${c.handlers} handlers + ${c.api} API buffer`,
      value: connections,
      unit: "each",
    },
    {
      name: "on the server",
      formula: `${processes} x ${connections}`,
      value: processes * connections,
      unit: `of ${maxConnections}`,
    },
  ];
}
