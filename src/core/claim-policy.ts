/** A worker that claims this many tasks at once has a backlog and needs no notifications. */
export const BACKLOG_MIN = 8;

/** Initial claim size if none is set. */
export const BATCH_START = 50;
// Upper bound for the growing claim size.
const BATCH_MAX = 500;

// A claim that returns less than this share of the requested tasks has reached the end of the backlog. A claim that
// returns more may have skipped a counter that another claim had locked.
const SHORT_SHARE = 0.25;
// A task that stays in a worker longer than this might have started sooner in another one.
const IN_HAND_MS_MAX = 50;
// A full claim lets the next one request this many times as many tasks.
const GROWTH = 4;
// Below this many permits, a tenth is less than one permit: claims stop only when no permit is free.
const TENTH_FROM = 10;

/** Signals that make claims smaller. */
export interface Pressed {
  readonly memory: boolean;
  readonly taskDuration: boolean;
  readonly eventLoopDelay: boolean;
}

/** Inputs that determine the size of a claim. */
export interface ClaimTerms {
  readonly permitsFree: number;
  readonly permitsMax: number;
  /** Outcomes that the same statement records. */
  readonly settling: number;
  readonly batchMax: number;
  /** How many more tasks fit into the payload byte budget. */
  readonly payloadRoom: number;
  /** Whether few permits were free at the last claim. If so, claims resume only when more than a tenth is free. */
  readonly wasFew: boolean;
  /** Whether the worker is filling up. If so, it also uses the last tenth of its permits. */
  readonly filling: boolean;
  readonly pressed: Pressed;
}

/**
 * The number of free permits from which a worker claims new tasks; below it, the worker only replaces tasks it settles.
 */
export function enoughFree(max: number): number {
  return max < TENTH_FROM ? 1 : Math.ceil(max / 10);
}

/**
 * Returns whether fewer than a tenth of the permits are free; with a maximum below 10, whether none is free. Once true,
 * it stays true until an eighth is free, so that single permits that come and go do not start and stop claims. If the
 * maximum is so small that an eighth is not a whole permit more, there is no such gap.
 */
export function fewFree(was: boolean, free: number, max: number): boolean {
  const enough = enoughFree(max);
  return free < (was ? Math.max(enough, Math.floor(max / 8)) : enough);
}

/**
 * Returns how many tasks to request: as many as there are free permits, at most a batch, reduced under pressure, but at
 * least one. Permits of tasks that the same statement settles count as free.
 *
 * While few permits are free, the worker does not claim on them, unless it is filling up: a backlog uses all permits. A
 * settled task can still be replaced by the next one in the same statement, because its permit was never free. So a
 * worker at full load keeps more than nine tenths of its permits busy, with a steady exchange. If it had to let a tenth
 * of its tasks end before claiming again, its load would oscillate and it would lose that tenth. Under pressure the
 * exchange is reduced like any claim, and the number of claimed tasks shrinks.
 */
export function claimSize(terms: ClaimTerms): number {
  const { permitsFree, permitsMax, settling, batchMax, payloadRoom, wasFew, filling, pressed } = terms;
  const free = permitsFree + settling;
  const usable = fewFree(wasFew, free, permitsMax) && !filling ? settling : free;
  const size = Math.min(usable, batchMax, payloadRoom);
  return size <= 0 ? 0 : Math.max(1, reduced(size, pressed));
}

/** Computed in whole tenths, because 0.7 * 0.7 is not quite 0.49. */
function reduced(size: number, { memory, taskDuration, eventLoopDelay }: Pressed): number {
  const tenths = (memory ? 5 : 10) * (taskDuration ? 7 : 10) * (eventLoopDelay ? 7 : 10);
  return Math.floor((size * tenths) / 1000);
}

/** The worker's load when the reply to a claim arrives. */
interface Load {
  /** Tasks claimed by this worker and not yet ended, and the number it has completed so far. */
  readonly inHand: number;
  readonly completed: number;
  readonly nowMs: number;
}

/**
 * The maximum size of one claim. A configured size is a hard cap. Without one, the maximum doubles while claims come
 * back full and tasks are short: a statement costs more than the tasks in it, so large claims drain a backlog of short
 * tasks twice as fast. Growth ends when a claim returns little or tasks stay long: then even shares among workers
 * matter more.
 */
export class BatchSize {
  readonly #fixed: number | undefined;
  #max = BATCH_START;
  #sinceMs = 0;
  #completed = 0;

  constructor(fixed: number | undefined) {
    this.#fixed = fixed;
  }

  get max(): number {
    return this.#fixed ?? this.#max;
  }

  learn({ want }: Pick<ClaimPlan, "want">, claimed: number, { inHand, completed, nowMs }: Load): void {
    if (this.#fixed !== undefined) return;
    if (claimed < want * SHORT_SHARE) this.#max = BATCH_START;
    if (claimed < want || want < this.#max) return;
    const ms = nowMs - this.#sinceMs;
    const done = completed - this.#completed;
    this.#sinceMs = nowMs;
    this.#completed = completed;
    if (done === 0) return;
    // Time a task stays in the worker, by Little's law.
    const inHandMs = (inHand * ms) / done;
    this.#max = inHandMs > IN_HAND_MS_MAX ? BATCH_START : Math.min(BATCH_MAX, 2 * this.#max);
  }
}

/** The worker's state when its next statement is sent. */
export interface ClaimConditions {
  readonly permitsFree: number;
  /** Outcomes that the same statement records. */
  readonly settling: number;
  /** Slots that these outcomes release; only evaluated while `fetchesAnnounced`. */
  readonly slotsReleased: number;
  /** How many more tasks fit into the payload byte budget. */
  readonly payloadRoom: number;
  /** The most tasks a statement may claim without running into the server's statement_timeout. */
  readonly sizeMax: number;
  readonly pressed: Pressed;
}

/** A planned claim: how much to request, and how to interpret the reply. */
export interface ClaimPlan {
  /** Number of tasks to request; 0: claim nothing. */
  readonly want: number;
  /** How many of them need a permit beyond those of the tasks that the same statement settles. */
  readonly extra: number;
  /** Whether the database records from the reply that the worker is asleep: it does if the claim comes back short. */
  readonly reports: boolean;
  /** Whether the claim fetches only announced tasks. If so, a full reply does not indicate a backlog. */
  readonly announced: boolean;
}

/** A statement that claims nothing. */
export const NO_CLAIM: ClaimPlan = Object.freeze({ want: 0, extra: 0, reports: false, announced: false });

interface ClaimPolicyOptions {
  readonly permitsMax: number;
  /** If unset: see BatchSize. */
  readonly batchSize: number | undefined;
  /** Whether notifications can wake the worker, so that reporting it as asleep is worthwhile. */
  readonly notified: boolean;
}

/**
 * Decides when a worker claims and how many tasks it requests. Used by the worker and by the simulator of `plan`.
 *
 * | the worker | claims | requests |
 * |---|---|---|
 * | has a backlog: its last claim came back full | on every connection | four times as many as before, up to a batch |
 * | is awake: something may be claimable | once | at least one task more than it settles |
 * | is asleep, notified of fewer than BACKLOG_MIN tasks | once | announced tasks, and those its outcomes release |
 * | is asleep, not notified | only to replace settled tasks | tasks that its own outcomes release |
 *
 * A worker whose claim came back short reports with the next claim that it is asleep, so that an enqueue notifies it.
 * It stays asleep while it executes the tasks that notifications and its own outcomes bring, and fetches only those:
 * otherwise the fastest or busiest worker would take tasks that others were notified of. It wakes for a backlog, or
 * when it has no permit left, so that notifications go to another worker.
 */
export class ClaimPolicy {
  readonly #permitsMax: number;
  readonly #notified: boolean;
  readonly #batch: BatchSize;
  /** The last claim came back full: there are more tasks. */
  #backlog = false;
  /** Something may be claimable: one claim is due. */
  #claimDue = true;
  /** Tasks that notifications announced and that have not been requested yet. */
  #announced = 0;
  // State of the worker's row in the database. Only one statement at a time changes it; otherwise the replies could
  // arrive in another order than the changes.
  #asleep = false;
  #reportDue = false;
  #reporting = false;
  #inFlight = 0;
  // Claims begin with one task: tasks that arrive a few at a time are shared among all awake workers, and a backlog
  // gets full batches after three claims.
  #extraMax = 1;
  #few = false;
  /** A backlog appeared while more than few permits were free, it lasts, and at least one permit is still free. */
  #filling = false;

  constructor({ permitsMax, batchSize, notified }: ClaimPolicyOptions) {
    this.#permitsMax = permitsMax;
    this.#notified = notified;
    this.#batch = new BatchSize(batchSize);
  }

  /** Whether the database records this worker as asleep. */
  get asleep(): boolean {
    return this.#asleep;
  }

  /** Whether the next claim fetches only announced tasks: all others are for the workers notified of them. */
  get fetchesAnnounced(): boolean {
    return this.#asleep && !this.#backlog && !this.#claimDue && this.#announced < BACKLOG_MIN;
  }

  /** Whether the worker claims nothing with this many free permits. */
  stopsWith(permitsFree: number): boolean {
    return permitsFree <= 0 || (!this.#filling && fewFree(this.#few, permitsFree, this.#permitsMax));
  }

  /** Something may be claimable. */
  wake(): void {
    this.#claimDue = true;
  }

  /**
   * Records that this many tasks were enqueued for this worker. One full claim shows whether there are more than a
   * batch.
   */
  announce(tasks: number): void {
    this.#announced = Math.min(this.#announced + tasks, this.#batch.max);
  }

  /** A new session is awake in the database. */
  sessionBegan(): void {
    this.#asleep = this.#reportDue = false;
    this.#claimDue = true;
  }

  /** Plans the claim that goes with the next statement. Call `sent` when it is sent. */
  next(at: ClaimConditions): ClaimPlan {
    const announced = this.fetchesAnnounced;
    const most = this.#most(at, announced);
    const want = Math.min(most, this.#capacity(at), at.sizeMax);
    if (want <= 0) return NO_CLAIM;
    const extra = Math.max(0, want - at.settling);
    return { want, extra, reports: this.#reports(extra, at), announced };
  }

  sent(claim: ClaimPlan): void {
    if (claim.want === 0) return;
    this.#claimDue = false;
    this.#announced = Math.max(0, this.#announced - claim.want);
    this.#inFlight++;
    if (claim.reports) this.#reporting = true;
  }

  /** The recorded state in the database is uncertain after a lost reply: report again. */
  reportLost(): void {
    this.#asleep = false;
    this.#reportDue = true;
  }

  /** The claim was answered or has failed. */
  ended(claim: ClaimPlan): void {
    if (claim.want > 0) this.#inFlight--;
    if (claim.reports) this.#reporting = false;
  }

  /** Updates the policy from the size of the reply. */
  learn(claim: ClaimPlan, claimed: number, load: Load): void {
    const short = claimed < claim.want;
    this.#batch.learn(claim, claimed, load);
    if (!claim.announced || short) {
      this.#backlog = !short;
      this.#extraMax = short
        ? Math.max(1, claimed)
        : Math.min(this.#batch.max, GROWTH * Math.max(claimed, this.#extraMax));
    }
    if (claim.reports) {
      // Claim once more: an enqueue that committed in between did not see the worker asleep and did not notify it. An
      // awake worker gets no notifications, so a permit released in the meantime must not stay unused.
      if (!short || !this.#asleep) this.#claimDue = true;
      this.#asleep = short;
      this.#reportDue = false;
    } else if (short && !this.#asleep && this.#notified) {
      this.#reportDue = this.#claimDue = true;
    }
  }

  /** The most tasks to request: replacements for settled tasks, plus extra ones. */
  #most({ settling, slotsReleased }: ClaimConditions, announced: boolean): number {
    const mayClaim = this.#backlog || (this.#inFlight === 0 && (this.#claimDue || this.#announced > 0));
    if (settling === 0 && !mayClaim) return 0;
    if (announced) return slotsReleased + this.#announced;
    // Request more than is settled, so that the reply shows whether there is more.
    return settling + Math.max(this.#extraMax, this.#announced);
  }

  /** How many tasks the worker can take, given its permits, bytes and pressure. */
  #capacity({ permitsFree, settling, payloadRoom, pressed }: ClaimConditions): number {
    const permitsMax = this.#permitsMax;
    const wasFew = this.#few;
    this.#few = fewFree(wasFew, permitsFree + settling, permitsMax);
    this.#filling = this.#backlog && (this.#few ? this.#filling && permitsFree > 0 : true);
    const filling = this.#filling;
    const batchMax = this.#batch.max;
    return claimSize({ permitsFree, permitsMax, settling, batchMax, payloadRoom, wasFew, filling, pressed });
  }

  #reports(extra: number, { permitsFree, payloadRoom }: ClaimConditions): boolean {
    if (!this.#notified || this.#reporting) return false;
    if (this.#asleep) return extra >= BACKLOG_MIN || this.stopsWith(permitsFree - extra) || payloadRoom <= extra;
    // guard: who can take nothing is not asleep -> test/worker/pressure/worker.test.ts: "a full worker passes its rings on to other workers, without a poll"
    return this.#reportDue /* guard:asleep */ && !this.stopsWith(permitsFree) && payloadRoom > 0; /* end */
  }
}
