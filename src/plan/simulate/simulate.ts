import { Agenda } from "./agenda.js";
import { Ledger } from "./ledger.js";
import { Market } from "./market.js";
import { Process, type ProcessNumbers } from "./process.js";
import { exponential, randomOf } from "./random.js";
import { Cores, Thread } from "./thread.js";

/** A workload and the setting that runs it. Numbers are used as given: the caller has validated them. */
export interface SimulationInput extends Omit<ProcessNumbers, "pollIntervalMs"> {
  readonly ratePerSecond: number;
  /** Whether tasks arrive at even intervals instead of independently of each other. */
  readonly steady: boolean;
  readonly meanMs: number;
  readonly processes: number;
  readonly cores: number;
  readonly pollIntervalMs?: number;
  readonly seconds: number;
  readonly seed: number;
}

/** The result. Counts cover the whole run; the rest is measured after a warm-up. */
export interface Simulation {
  readonly seconds: number;
  readonly warmupSeconds: number;
  readonly seed: number;
  readonly arrived: number;
  readonly done: number;
  readonly waiting: number;
  /** Tasks claimed and not recorded yet. */
  readonly held: number;
  readonly throughputPerSecond: number;
  readonly permitUtilisation: number;
  /** The share of the time in which a process runs JavaScript, on average. */
  readonly loopUtilisation: number;
  readonly coreUtilisation: number;
  /** From arrival to the start of the handler. */
  readonly queueWaitMs: { readonly mean: number; readonly p50: number; readonly p99: number };
  readonly inFlight: { readonly mean: number; readonly max: number };
  readonly backlogGrowthPerSecond: number;
  readonly stable: boolean;
}

/** Called from time to time with the share of the run that is over. */
type Progress = (share: number) => void;

const POLL_INTERVAL_MS = 100;
const TASKS_MAX = 2_000_000;
const POLLS_MAX = 2_000_000;
const WARMUP_SHARE = 0.1;
const WARMUP_SHARE_MAX = 0.5;
// This many durations fill a worker that began empty.
const WARMUP_DURATIONS = 3;
const STEPS_PER_PROGRESS = 50_000;
// A backlog is growing if it increases by more than random variation in a stable run: both as a share and in number.
const GROWTH_SHARE = 0.02;
const GROWTH_DEVIATIONS = 4;

/** Runs the workload, event by event, in bounded time and memory, whatever the input. */
export function simulate(input: SimulationInput, progress?: Progress): Simulation {
  const world = new World(input);
  const seconds = boundedSeconds(input);
  const warmupMs = warmupOf(input, seconds * 1000);
  world.runUntil(warmupMs, (ms) => progress?.(ms / (seconds * 1000)));
  const before = world.take();
  world.ledger.restart();
  world.runUntil(seconds * 1000, (ms) => progress?.(ms / (seconds * 1000)));
  return outcomeOf(input, { world, before, seconds, warmupSeconds: warmupMs / 1000 });
}

function boundedSeconds({ seconds, ratePerSecond, processes, ...input }: SimulationInput): number {
  const pollsPerSecond = (processes * 1000) / (input.pollIntervalMs ?? POLL_INTERVAL_MS);
  return Math.min(seconds, TASKS_MAX / ratePerSecond, POLLS_MAX / pollsPerSecond);
}

function warmupOf({ meanMs, claimMs }: SimulationInput, allMs: number): number {
  const filledMs = WARMUP_DURATIONS * (meanMs + 2 * claimMs);
  return Math.min(Math.max(allMs * WARMUP_SHARE, filledMs), allMs * WARMUP_SHARE_MAX);
}

interface Counts {
  readonly arrived: number;
  readonly done: number;
  readonly busyMs: number;
}

class World {
  readonly #agenda = new Agenda();
  readonly market: Market;
  readonly ledger = new Ledger(this.#agenda);
  readonly #threads: Thread[];

  constructor(input: SimulationInput) {
    const random = randomOf(input.seed);
    const agenda = this.#agenda;
    const { market, ledger } = { market: new Market(random), ledger: this.ledger };
    this.market = market;
    const cores = new Cores(input.cores);
    this.#threads = Array.from({ length: input.processes }, () => new Thread(agenda, cores));
    const numbers = { ...input, pollIntervalMs: input.pollIntervalMs ?? POLL_INTERVAL_MS };
    for (const thread of this.#threads) void new Process(numbers, { agenda, market, thread, ledger, random });
    const meanGapMs = 1000 / input.ratePerSecond;
    const gapMs = (): number => (input.steady ? meanGapMs : exponential(random, meanGapMs));
    const arrive = (): void => {
      agenda.after(gapMs(), arrive);
      market.arrive(agenda.nowMs);
    };
    agenda.after(gapMs(), arrive);
  }

  runUntil(ms: number, progress: (ms: number) => void): void {
    for (let steps = 1; this.#agenda.step(ms); steps++)
      if (steps % STEPS_PER_PROGRESS === 0) progress(this.#agenda.nowMs);
  }

  take(): Counts {
    const busyMs = this.#threads.reduce((sum, thread) => sum + thread.busyMs, 0);
    return { arrived: this.market.arrived, done: this.ledger.done, busyMs };
  }
}

interface Run {
  readonly world: World;
  readonly before: Counts;
  readonly seconds: number;
  readonly warmupSeconds: number;
}

function outcomeOf(input: SimulationInput, { world, before, ...run }: Run): Simulation {
  const { market, ledger } = world;
  const after = world.take();
  const overSeconds = run.seconds - run.warmupSeconds;
  const busySeconds = (after.busyMs - before.busyMs) / 1000;
  const arrived = after.arrived - before.arrived;
  const growth = arrived - (after.done - before.done);
  const growthMax = Math.max(
    input.processes * input.permits,
    GROWTH_DEVIATIONS * Math.sqrt(arrived),
    GROWTH_SHARE * arrived,
  );
  return {
    ...run,
    seed: input.seed,
    arrived: after.arrived,
    done: after.done,
    waiting: market.waiting,
    held: ledger.held,
    throughputPerSecond: (after.done - before.done) / overSeconds,
    // A sum over millions of moments is not exactly 1 when all permits are in use all the time.
    permitUtilisation: Math.min(1, ledger.permitsInUse.mean / (input.processes * input.permits)),
    loopUtilisation: busySeconds / (overSeconds * input.processes),
    coreUtilisation: busySeconds / (overSeconds * input.cores),
    queueWaitMs: {
      mean: ledger.wait.mean,
      p50: ledger.wait.quantile(0.5),
      p99: ledger.wait.quantile(0.99),
    },
    inFlight: { mean: ledger.inFlight.mean, max: ledger.inFlight.max },
    backlogGrowthPerSecond: growth / overSeconds,
    stable: growth <= growthMax,
  };
}
