/** A worker that gets this many tasks at once works off a backlog and needs no notifications. */
export const BACKLOG_MIN = 8;

/** Claims start at this size if none is set. */
export const BATCH_START = 50;
// And grow to this.
const BATCH_MAX = 500;

// A claim that returns less than this share of what it asked for has reached the end of the backlog. One that returns
// more may have met a counter that another claim had locked.
const SHORT_SHARE = 0.25;
// Tasks that stay longer than this in a worker might have started sooner in another one.
const IN_HAND_MS_MAX = 50;
// A full claim lets the next one ask for this many times as much.
const GROWTH = 4;
// With fewer permits than this a tenth of them is less than one: only none at all stops claims.
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
  /** Whether few permits were free at the last claim: then it takes more than a tenth to go on. */
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

/** How busy the worker is when a claim is answered. */
interface Load {
  /** Tasks in this worker, and how many it has completed so far. */
  readonly inHand: number;
  readonly completed: number;
  readonly nowMs: number;
}

/**
 * The most tasks of one claim. A size that is set is a hard cap. Without one, claims double while they come back full
 * and tasks are brief: a statement costs more than the tasks in it, so a backlog of brief tasks drains twice as fast in
 * large claims. A claim that comes back with little, or tasks that stay long, end that: then even shares matter more.
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
    // How long a task stays, by Little's law.
    const inHandMs = (inHand * ms) / done;
    this.#max = inHandMs > IN_HAND_MS_MAX ? BATCH_START : Math.min(BATCH_MAX, 2 * this.#max);
  }
}

/** What a worker has when its next statement is sent. */
export interface ClaimConditions {
  readonly permitsFree: number;
  /** Outcomes that the same statement records. */
  readonly settling: number;
  /** Slots that these outcomes release; only asked for while `fetchesAnnounced`. */
  readonly slotsReleased: number;
  /** How many more tasks fit by their bytes. */
  readonly payloadRoom: number;
  /** The most that a statement may claim without running into the server's statement_timeout. */
  readonly sizeMax: number;
  readonly pressed: Pressed;
}

/** A claim: what to ask for, and what its answer will mean. */
export interface ClaimPlan {
  /** Tasks to ask for; 0: claim nothing. */
  readonly want: number;
  /** Those of them that need a permit beyond the permits of what the same statement settles. */
  readonly extra: number;
  /** Whether the database notes by the answer if the worker sleeps: it does if the claim comes back short. */
  readonly reports: boolean;
  /** Whether it fetches only what was announced: then a full answer says nothing about a backlog. */
  readonly announced: boolean;
}

/** A statement that claims nothing. */
export const NO_CLAIM: ClaimPlan = Object.freeze({ want: 0, extra: 0, reports: false, announced: false });

interface ClaimPolicyOptions {
  readonly permitsMax: number;
  /** Not set: see BatchSize. */
  readonly batchSize: number | undefined;
  /** Whether notifications can wake the worker, so that it is worth reporting that it sleeps. */
  readonly notified: boolean;
}

/**
 * Decides when a worker claims and how many tasks it asks for. Used by the worker and by the simulator of `plan`.
 *
 * | the worker | claims | asks for |
 * |---|---|---|
 * | has a backlog: its last claim came back full | on every connection | four times as much as before, up to a batch |
 * | is awake: something may be claimable | once | at least one more than it settles |
 * | is asleep, and was notified of fewer than BACKLOG_MIN tasks | once | what was announced, and what its own outcomes release |
 * | is asleep, and was not notified | only in place of what it settles | what its own outcomes release |
 *
 * A worker whose claim came back short reports with the next claim that it sleeps, so that an enqueue notifies it. It
 * stays asleep while it works off what notifications and its own outcomes bring, and fetches just that: otherwise the
 * quickest or busiest worker takes what others were notified of. It wakes for a backlog, or when it has no permit
 * left, so that notifications go to another worker.
 */
export class ClaimPolicy {
  readonly #permitsMax: number;
  readonly #notified: boolean;
  readonly #batch: BatchSize;
  /** The last claim came back full: there is more. */
  #backlog = false;
  /** Something may be claimable: one claim is due. */
  #claimDue = true;
  /** Tasks that notifications announced and that were not asked for yet. */
  #announced = 0;
  // What the worker's row says. Only one statement at a time changes it, or the replies could come in another order
  // than the changes.
  #asleep = false;
  #reportDue = false;
  #reporting = false;
  #inFlight = 0;
  // Claims begin with one task: what arrives a few at a time is shared among all workers that are awake, and a backlog
  // gets full batches after three claims.
  #extraMax = 1;
  #few = false;
  /** A backlog came when more than few permits were free, and lasts, and the last permit is not yet taken. */
  #filling = false;

  constructor({ permitsMax, batchSize, notified }: ClaimPolicyOptions) {
    this.#permitsMax = permitsMax;
    this.#notified = notified;
    this.#batch = new BatchSize(batchSize);
  }

  /** Whether the database notes this worker as asleep. */
  get asleep(): boolean {
    return this.#asleep;
  }

  /** Whether the next claim is only for what was announced: anything else is for workers that are notified of it. */
  get fetchesAnnounced(): boolean {
    return this.#asleep && !this.#backlog && !this.#claimDue && this.#announced < BACKLOG_MIN;
  }

  /** Whether nothing is claimed on so many free permits. */
  stopsWith(permitsFree: number): boolean {
    return permitsFree <= 0 || (!this.#filling && fewFree(this.#few, permitsFree, this.#permitsMax));
  }

  /** Something may be claimable. */
  wake(): void {
    this.#claimDue = true;
  }

  /** So many tasks were enqueued for this worker. One full claim shows whether there are more than a batch. */
  announce(tasks: number): void {
    this.#announced = Math.min(this.#announced + tasks, this.#batch.max);
  }

  /** A new session is awake in the database. */
  sessionBegan(): void {
    this.#asleep = this.#reportDue = false;
    this.#claimDue = true;
  }

  /** The claim that goes with the next statement. Call `sent` when it is sent. */
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

  /** It is not known what the database noted: report again. */
  reportLost(): void {
    this.#asleep = false;
    this.#reportDue = true;
  }

  /** The claim was answered, or failed. */
  ended(claim: ClaimPlan): void {
    if (claim.want > 0) this.#inFlight--;
    if (claim.reports) this.#reporting = false;
  }

  /** What the size of the answer says about the next claim. */
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
      // Claim once more: an enqueue that committed in between did not see the worker asleep and did not notify it.
      // Awake, nobody notifies it: a permit that came back meanwhile must not stay unused.
      if (!short || !this.#asleep) this.#claimDue = true;
      this.#asleep = short;
      this.#reportDue = false;
    } else if (short && !this.#asleep && this.#notified) {
      this.#reportDue = this.#claimDue = true;
    }
  }

  /** The most to ask for: in place of what is settled, and more. */
  #most({ settling, slotsReleased }: ClaimConditions, announced: boolean): number {
    const mayClaim = this.#backlog || (this.#inFlight === 0 && (this.#claimDue || this.#announced > 0));
    if (settling === 0 && !mayClaim) return 0;
    if (announced) return slotsReleased + this.#announced;
    // More than is settled, so that the answer shows whether there is more.
    return settling + Math.max(this.#extraMax, this.#announced);
  }

  /** How many the worker can take, by permits, bytes and pressure. */
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
    // guard: who can take nothing is not asleep -> test/worker/pressure/worker.test.ts: "a worker that can take nothing more lets the bell ring for others, without a poll"
    return this.#reportDue /* guard:asleep */ && !this.stopsWith(permitsFree) && payloadRoom > 0; /* end */
  }
}
