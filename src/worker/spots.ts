import type { Clock } from "../core/ports.js";
import type { ClaimedTask, Look, Spot } from "../postgres/step.js";

// Full searches may take a tenth of the time. They run at most every quarter of a second, and at least every second:
// tasks of a dead worker come before the heads, and must start again within 2 s.
const FULL_EVERY_MS_MIN = 250;
const FULL_EVERY_MS_MAX = 1_000;
const FULL_EVERY_COSTS = 10;
// The first search on a connection is slow because it is planned; on a busy machine, any search may be slow.
const SLOW_IN_A_ROW = 3;
// If there are no tasks at all, claims keep searching everywhere unless that takes at least this long.
const HOPELESS_MS = 25;
// If searches from the heads are not faster by this factor, walking to the heads is not what makes searches slow.
const QUICKER = 4;
// A claim finds at most 16 sources; it may search twice as many.
const SPOTS_PER_CLAIM_MAX = 32;
const SPOTS_MAX = 1_000;

interface Found {
  readonly look: Look | null;
  readonly claimed: readonly Pick<ClaimedTask, "stream">[];
}

/**
 * Where claims search while searches are slow. A snapshot held elsewhere (a backup, a forgotten transaction) keeps rows
 * alive that were claimed since, and every search would walk over all of them to the first row it can claim. So a claim
 * begins where an earlier one found the head of each source. An occasional full search finds tasks that have come
 * before the head (a retry, a higher priority) and tasks in sources that were empty.
 */
export class Spots {
  readonly #clock: Clock;
  readonly #onRested: () => void;
  readonly #spots = new Map<string, Spot>();
  #slow = false;
  #slowInARow = 0;
  #fullLookMs = 0;
  #nextFullMs = 0;
  #calmUntilMs = 0;
  #rest: NodeJS.Timeout | null = null;
  #stopped = false;

  /** onRested: there may be more tasks than the claims found, and a full search is allowed again. */
  constructor(clock: Clock, onRested: () => void) {
    this.#clock = clock;
    this.#onRested = onRested;
  }

  /** Where the next claim searches. Empty: everywhere. Null: nowhere until the next full search. */
  next(): readonly Spot[] | null {
    const now = this.#clock.now();
    if (this.#slow && now < this.#nextFullMs) {
      if (this.#spots.size > 0) return some([...this.#spots.values()]);
      if (this.#fullLookMs < HOPELESS_MS) return [];
      this.#lookEverywhereSoon();
      return null;
    }
    // Only one of the claims in flight pays for the full search.
    this.#nextFullMs = now + FULL_EVERY_MS_MIN;
    return [];
  }

  /** Learns from a claim that searched `from` for `want` tasks. A fast full search reports no `look`. */
  learn(from: readonly Spot[], { look, claimed }: Found, want: number): void {
    if (from.length === 0) this.#judge(look);
    else if (claimed.length < want) this.#lookEverywhereSoon();
    if (look === null || !this.#slow) return;
    if (from.length > 0 && look.ms * QUICKER > this.#fullLookMs) return this.#giveUp();
    if (this.#spots.size > SPOTS_MAX) this.#spots.clear();
    for (const head of look.heads) this.#spots.set(`${head.stream} ${head.gate}`, head);
  }

  stop(): void {
    this.#stopped = true;
    if (this.#rest !== null) clearTimeout(this.#rest);
  }

  #judge(look: Look | null): void {
    const now = this.#clock.now();
    if (look === null) this.#spots.clear();
    this.#slowInARow = look === null ? 0 : this.#slowInARow + 1;
    this.#slow = this.#slowInARow >= SLOW_IN_A_ROW && now >= this.#calmUntilMs;
    this.#fullLookMs = look?.ms ?? 0;
    const restMs = Math.max(FULL_EVERY_MS_MIN, FULL_EVERY_COSTS * this.#fullLookMs);
    this.#nextFullMs = now + Math.min(FULL_EVERY_MS_MAX, restMs);
  }

  /** Searching from the heads does not help: do not try it again for a while. */
  #giveUp(): void {
    this.#slow = false;
    this.#spots.clear();
    this.#calmUntilMs = this.#clock.now() + FULL_EVERY_MS_MAX;
  }

  /** A claim that searched only some spots cannot tell that there are no more tasks. */
  #lookEverywhereSoon(): void {
    if (this.#stopped) return;
    // Add 1 ms, because a timer may fire early by the monotonic clock.
    const restMs = Math.max(0, Math.ceil(this.#nextFullMs - this.#clock.now()) + 1);
    this.#rest ??= setTimeout(() => {
      this.#rest = null;
      this.#onRested();
    }, restMs);
  }
}

/**
 * Rotates the spots by a random offset, so that each comes first from time to time: a claim that finds enough searches
 * no further.
 */
function some(spots: readonly Spot[]): readonly Spot[] {
  const first = Math.floor(Math.random() * spots.length);
  return [...spots.slice(first), ...spots.slice(0, first)].slice(0, SPOTS_PER_CLAIM_MAX);
}
