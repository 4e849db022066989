import { linesOf, type Capacity, demandOf, sharesOf, transactionsPerSecond } from "./capacity.js";
import { planDefaults, type PlanInput, type Setting } from "./input.js";
import { connectionsFor, permitsInAll, PERMITS_MAX, processesByPermits } from "./recommend.js";
import { count, number, percent } from "./words.js";

/** Something that will not work, or only barely. */
export interface Warning {
  readonly code: "too_slow" | "tight" | "cores" | "connections" | "transactions" | "server_connections";
  readonly message: string;
}

// PostgreSQL reserves some of max_connections for superusers.
const RESERVED_CONNECTIONS = 3;

/** The problems of a setting for a workload, and their extent. */
export function warningsOf(input: PlanInput, setting: Setting, capacity: Capacity): Warning[] {
  const slow = tooSlow(input, setting, capacity);
  return [
    slow,
    // Already reported if the processor is what makes it too slow.
    slow !== null && capacity.bottleneck === "cpu" ? null : coresOf(input),
    connectionsEach(input, setting) ?? transactionsOf(input, setting),
    connectionsInAll(input, setting),
  ].filter((warning) => warning !== null);
}

function tooSlow(input: PlanInput, setting: Setting, capacity: Capacity): Warning | null {
  const { ratePerSecond, utilisation } = input;
  const busy = ratePerSecond / capacity.perSecond;
  const holder = holderOf(input, setting, capacity);
  const rate = number(ratePerSecond);
  if (busy > 1) {
    const missing = percent(1 - 1 / busy);
    const growth = `the backlog grows by ${number(ratePerSecond - capacity.perSecond)} tasks/s`;
    const message =
      `cannot keep up: ${holder} ${number(capacity.perSecond)} of ${rate} tasks/s, ${missing} too few, ` +
      `so ${growth}; ${remedy(input, setting, capacity)}`;
    return { code: "too_slow", message };
  }
  // A recommended setting meets its target up to rounding.
  if (busy <= Math.max(utilisation, 0.9)) return null;
  const most = `${holder} at most ${number(capacity.perSecond)} tasks/s`;
  const message = `${most}: ${rate} tasks/s is ${percent(busy)} of that, so tasks will wait long`;
  return { code: "tight", message };
}

function holderOf(input: PlanInput, setting: Setting, { bottleneck }: Capacity): string {
  const { processes, permits, claimLoops } = setting;
  if (bottleneck === "permits") return `${number(processes * permits)} permits in total handle`;
  if (bottleneck === "claims") return `${number(processes * linesOf(claimLoops))} concurrent claims in total handle`;
  const running = Math.min(processes, input.cores);
  const them = `${count(processes, "process", "processes")} on ${count(input.cores, "core")}`;
  return `${them} (${number(running)} at a time) handle`;
}

function remedy(input: PlanInput, setting: Setting, { bottleneck }: Capacity): string {
  const { processes, claimLoops } = setting;
  if (bottleneck === "permits") {
    const each = Math.ceil(permitsInAll(input, processes) / processes);
    if (each <= PERMITS_MAX) return `${number(each)} permits per process are enough`;
    const needed = processesByPermits(input, processes);
    return `a process has at most ${number(PERMITS_MAX)} permits, so ${number(needed)} processes are needed`;
  }
  // A process has at least two lines: with one claim loop, a second would change nothing.
  if (bottleneck === "claims") return `raise the batch, or set more than ${linesOf(claimLoops)} claim loops`;
  const needed = Math.ceil(demandOf(input).cores / input.utilisation);
  return `${count(needed, "process", "processes")} on as many cores are enough`;
}

function coresOf(input: PlanInput): Warning | null {
  const { cores, utilisation } = input;
  const demand = demandOf(input);
  if (demand.cores <= cores * utilisation) return null;
  const needed = Math.ceil(demand.cores / utilisation);
  const used = `JavaScript uses ${number(demand.cores)} of ${count(cores, "core")}`;
  const message = `${used}, more than ${percent(utilisation)}: ${count(needed, "core")} would be enough`;
  return { code: "cores", message };
}

function connectionsEach(input: PlanInput, setting: Setting): Warning | null {
  const { problem } = sharesOf(input, setting);
  return problem === null ? null : { code: "connections", message: problem };
}

/** Warns if there are fewer connections than by default, unless their number was given explicitly. */
function transactionsOf(input: PlanInput, setting: Setting): Warning | null {
  const { handlers } = sharesOf(input, setting);
  const [carried, usual] = [transactionsPerSecond(input, setting), planDefaults.handlerConnections];
  if (input.handlerConnections !== null || handlers >= usual) return null;
  if (carried >= input.ratePerSecond) return null;
  const enough = connectionsFor(input, setting.claimLoops);
  const message =
    `handler transactions (ctx.transaction) share ${count(handlers, "connection")} per process: ` +
    `at most ${number(carried)} of ${number(input.ratePerSecond)} tasks/s if every task is in one all the time; ` +
    `${number(enough)} connections per process would leave ${usual} for them`;
  return { code: "transactions", message };
}

function connectionsInAll({ maxConnections }: PlanInput, { processes, connections }: Setting): Warning | null {
  const usable = Math.max(0, maxConnections - RESERVED_CONNECTIONS);
  const inAll = processes * connections;
  if (inAll <= usable) return null;
  const sum = `max_connections ${maxConnections} - ${RESERVED_CONNECTIONS} reserved`;
  const message =
    `the processes open ${number(inAll)} connections, but the server allows ${number(usable)} (${sum}): ` +
    `${number(inAll - usable)} too many; raise max_connections or use a pooler`;
  return { code: "server_connections", message };
}
