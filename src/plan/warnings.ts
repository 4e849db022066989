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
    const message = `cannot keep up: ${holder} ${number(capacity.perSecond)} of ${rate} tasks/s, ${missing} too few; the backlog grows by ${number(ratePerSecond - capacity.perSecond)} tasks/s${remedy(input, setting, capacity)}`;
    return { code: "too_slow", message };
  }
  // A recommended setting meets its target up to rounding.
  if (busy <= Math.max(utilisation, 0.9)) return null;
  const message = `${holder} ${number(capacity.perSecond)} tasks/s at most: ${rate} is ${percent(busy)} of that, and waits will be long`;
  return { code: "tight", message };
}

function holderOf(input: PlanInput, setting: Setting, { bottleneck }: Capacity): string {
  const { processes, permits, claimLoops } = setting;
  if (bottleneck === "permits") return `${number(processes * permits)} permits in all carry`;
  if (bottleneck === "claims") return `${count(processes * linesOf(claimLoops), "claim line")} in all carry`;
  const running = Math.min(processes, input.cores);
  return `${count(processes, "process", "processes")} on ${count(input.cores, "core")} (${number(running)} at a time) carry`;
}

function remedy(input: PlanInput, setting: Setting, { bottleneck }: Capacity): string {
  const { processes, claimLoops } = setting;
  if (bottleneck === "permits") {
    const each = Math.ceil(permitsInAll(input, processes) / processes);
    if (each <= PERMITS_MAX) return `; ${number(each)} permits each would do`;
    const needed = processesByPermits(input, processes);
    return `; a process has ${number(PERMITS_MAX)} permits at most, so it takes ${number(needed)} processes`;
  }
  // A process has at least two lines: with one claim loop, a second would change nothing.
  if (bottleneck === "claims") return `; raise the batch, or the claim loops above ${linesOf(claimLoops)}`;
  const needed = Math.ceil(demandOf(input).cores / input.utilisation);
  return `; ${count(needed, "process", "processes")} on as many cores would do`;
}

function coresOf(input: PlanInput): Warning | null {
  const { cores, utilisation } = input;
  const demand = demandOf(input);
  if (demand.cores <= cores * utilisation) return null;
  const needed = Math.ceil(demand.cores / utilisation);
  const message = `JavaScript takes ${number(demand.cores)} of ${count(cores, "core")}, over ${percent(utilisation)}: ${count(needed, "core")} would do`;
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
  const message = `transactions of handlers (ctx.transaction) share ${count(handlers, "connection")} in each process: at most ${number(carried)} of ${number(input.ratePerSecond)} tasks/s if every task holds one for all its time; ${number(enough)} connections each would give them ${usual}`;
  return { code: "transactions", message };
}

function connectionsInAll({ maxConnections }: PlanInput, { processes, connections }: Setting): Warning | null {
  const usable = Math.max(0, maxConnections - RESERVED_CONNECTIONS);
  const inAll = processes * connections;
  if (inAll <= usable) return null;
  const message = `${number(inAll)} connections in all, but the server takes ${number(usable)} (max_connections ${maxConnections}, ${RESERVED_CONNECTIONS} for superusers): ${number(inAll - usable)} too many; raise max_connections or put a pooler between`;
  return { code: "server_connections", message };
}
