/** A worker that gets this many at once has a backlog before it and needs no bell. */
export const RISE = 8;

// With fewer permits than this a tenth of them is less than one: only none at all stops claiming.
const TENTH_FROM = 10;

/** Signals that make claims smaller. */
export interface Pressed {
  readonly memory: boolean;
  readonly taskDuration: boolean;
  readonly eventLoopDelay: boolean;
}

/** All that the size of a claim depends on. */
export interface ClaimTerms {
  readonly permitsFree: number;
  readonly permitsMax: number;
  /** Outcomes that the same statement records. */
  readonly settling: number;
  readonly batchMax: number;
  /** How many more tasks fit by their bytes. */
  readonly payloadRoom: number;
  /** Whether few permits were free at the last look: then it takes more than a tenth to go on. */
  readonly wasFew: boolean;
  /** Whether the worker fills up: then it takes the last tenth too. */
  readonly filling: boolean;
  readonly pressed: Pressed;
}

/** With how many free permits a worker claims on them; with fewer it only replaces what it settles. */
export function enoughFree(max: number): number {
  return max < TENTH_FROM ? 1 : Math.ceil(max / 10);
}

/**
 * Whether fewer than a tenth of the permits are free; where the maximum is below 10, whether none is.
 * Once it is so, it takes an eighth to be over, so that single permits that come and go do not start and
 * stop claims. A maximum so small that an eighth is not a whole permit more has no such gap.
 */
export function fewFree(was: boolean, free: number, max: number): boolean {
  const enough = enoughFree(max);
  return free < (was ? Math.max(enough, Math.floor(max / 8)) : enough);
}

/**
 * How many tasks to ask for: as many as there are free permits, at most a batch, and what is left of that
 * under pressure, at least one. Permits of what the same statement settles count as free.
 *
 * While few permits are free, nothing is claimed on those, unless the worker fills up: a backlog takes all permits. But
 * a task that is settled may still be replaced by the next, in the same statement: its permit was never free. So a
 * worker at full load keeps more than nine tenths of its maximum busy, with a steady exchange. If it had to let a tenth
 * of its tasks end before it may claim again, it would go up and down at full load, and lose the tenth. Under pressure
 * the exchange is reduced like any claim, and what is in hand shrinks.
 */
export function claimSize(terms: ClaimTerms): number {
  const { permitsFree, permitsMax, settling, batchMax, payloadRoom, wasFew, filling, pressed } = terms;
  const free = permitsFree + settling;
  const usable = fewFree(wasFew, free, permitsMax) && !filling ? settling : free;
  const size = Math.min(usable, batchMax, payloadRoom);
  return size <= 0 ? 0 : Math.max(1, reduced(size, pressed));
}

/** In whole tenths, because 0.7 * 0.7 is not quite 0.49. */
function reduced(size: number, { memory, taskDuration, eventLoopDelay }: Pressed): number {
  const tenths = (memory ? 5 : 10) * (taskDuration ? 7 : 10) * (eventLoopDelay ? 7 : 10);
  return Math.floor((size * tenths) / 1000);
}
