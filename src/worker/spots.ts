import type { Clock } from "../core/ports.js";
import type { ClaimedTask, Look, Spot } from "../postgres/step.js";

// Full looks may take a tenth of the time, and come every quarter of a second at most, every second at
// least: what a dead worker had in hand stands before the heads, and is to start again within 2 s.
const FULL_EVERY_MS_MIN = 250;
const FULL_EVERY_MS_MAX = 1_000;
const FULL_EVERY_COSTS = 10;
// The first look of a connection is slow because it is planned, and any look on a machine that is busy.
const SLOW_IN_A_ROW = 3;
// Where there is nothing at all, claims go on looking everywhere unless that takes as long as this.
const HOPELESS_MS = 25;
// If looks from the heads are not this much quicker, the heads are not what makes them slow.
const QUICKER = 4;
// A claim finds at most 16 sources; it may look for twice as many.
const SPOTS_PER_CLAIM_MAX = 32;
const SPOTS_MAX = 1_000;

interface Found {
  readonly look: Look | null;
  readonly claimed: readonly Pick<ClaimedTask, "stream">[];
}

/**
 * Where claims look while looks take long. A snapshot that somebody holds elsewhere (a backup, a forgotten
 * transaction) keeps the rows alive that were claimed since, and every look would walk over all of them
 * to the first that can be taken. So a claim begins where an earlier one found the head of each source.
 * What has come to stand before that (a retry, a higher priority), or where there was nothing, is found by
 * a full look now and then.
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

  /** onRested: there may be more than the claims have found, and one may look everywhere again. */
  constructor(clock: Clock, onRested: () => void) {
    this.#clock = clock;
    this.#onRested = onRested;
  }

  /** Where the next claim looks; none: everywhere; null: nowhere, before the next full look. */
  next(): readonly Spot[] | null {
    const now = this.#clock.now();
    if (this.#slow && now < this.#nextFullMs) {
      if (this.#spots.size > 0) return some([...this.#spots.values()]);
      if (this.#fullLookMs < HOPELESS_MS) return [];
      this.#lookEverywhereSoon();
      return null;
    }
    // Only one of the claims that are under way pays for the full look.
    this.#nextFullMs = now + FULL_EVERY_MS_MIN;
    return [];
  }

  /** What came of a claim that looked there for so many. A full look that was quick says nothing. */
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

  /** It does not help; not again before a while. */
  #giveUp(): void {
    this.#slow = false;
    this.#spots.clear();
    this.#calmUntilMs = this.#clock.now() + FULL_EVERY_MS_MAX;
  }

  /** A claim that looked only here and there does not know that there is no more. */
  #lookEverywhereSoon(): void {
    if (this.#stopped) return;
    // One more, because a timer may be early by the monotonic clock.
    const restMs = Math.max(0, Math.ceil(this.#nextFullMs - this.#clock.now()) + 1);
    this.#rest ??= setTimeout(() => {
      this.#rest = null;
      this.#onRested();
    }, restMs);
  }
}

/** Each in turn, by chance: a claim that finds enough looks at no more. */
function some(spots: readonly Spot[]): readonly Spot[] {
  const first = Math.floor(Math.random() * spots.length);
  return [...spots.slice(first), ...spots.slice(0, first)].slice(0, SPOTS_PER_CLAIM_MAX);
}
