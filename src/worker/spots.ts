import type { Clock } from "../core/ports.js";
import type { ClaimedTask, Look, Spot } from "../postgres/step.js";

// Full looks may take a tenth of the time, and come at most every quarter of a second.
const FULL_EVERY_MS_MIN = 250;
const FULL_EVERY_COSTS = 10;
// A claim finds at most 16 sources; it may look for twice as many.
const SPOTS_PER_CLAIM_MAX = 32;
const SPOTS_MAX = 1_000;
const LOWEST = { gate: 0, rank: -32_768, id: "0" };

interface Found {
  readonly look: Look | null;
  readonly claimed: readonly Pick<ClaimedTask, "stream">[];
}

/**
 * Where claims look while looks take long. A snapshot that somebody holds elsewhere (a backup, a forgotten
 * transaction) keeps the rows alive that were claimed since, and every look would walk over all of them
 * to the first that can be taken. So a claim begins where an earlier one found the head of each source.
 * What has come to stand before that (a retry, a higher priority) is found by a full look now and then.
 */
export class Spots {
  readonly #streams: readonly number[];
  readonly #clock: Clock;
  readonly #onRested: () => void;
  readonly #spots = new Map<string, Spot>();
  #slow = false;
  #nextFullMs = 0;
  #rest: NodeJS.Timeout | null = null;
  #stopped = false;

  /** onRested: there may be more than the claims have found, and one may look everywhere again. */
  constructor(streams: readonly number[], clock: Clock, onRested: () => void) {
    this.#streams = streams;
    this.#clock = clock;
    this.#onRested = onRested;
    this.#forget();
  }

  /** Where the next claim looks; none: everywhere. */
  next(): readonly Spot[] {
    const now = this.#clock.now();
    if (this.#slow && now < this.#nextFullMs) return some([...this.#spots.values()]);
    // Only one of the claims that are under way pays for the full look.
    this.#nextFullMs = now + FULL_EVERY_MS_MIN;
    return [];
  }

  /** What came of a claim that looked there for so many. A full look that was quick says nothing. */
  learn(from: readonly Spot[], { look, claimed }: Found, want: number): void {
    if (from.length === 0) this.#judge(look);
    else if (claimed.length < want) this.#lookEverywhereSoon();
    if (look === null || !this.#slow) return;
    if (this.#spots.size > SPOTS_MAX) this.#forget();
    for (const head of look.heads) this.#spots.set(keyOf(head), head);
  }

  #judge(look: Look | null): void {
    if (this.#slow && look === null) this.#forget();
    this.#slow = look !== null;
    const restMs = Math.max(FULL_EVERY_MS_MIN, FULL_EVERY_COSTS * (look?.ms ?? 0));
    this.#nextFullMs = this.#clock.now() + restMs;
  }

  stop(): void {
    this.#stopped = true;
    if (this.#rest !== null) clearTimeout(this.#rest);
  }

  /** A claim that looked only here and there does not know that there is no more. */
  #lookEverywhereSoon(): void {
    if (this.#stopped) return;
    const restMs = Math.max(0, this.#nextFullMs - this.#clock.now());
    this.#rest ??= setTimeout(() => {
      this.#rest = null;
      this.#onRested();
    }, restMs);
  }

  /** Of a stream nothing is known but that there may be tasks without a gate. */
  #forget(): void {
    this.#spots.clear();
    for (const stream of this.#streams)
      this.#spots.set(keyOf({ stream, gate: 0 }), { stream, ...LOWEST });
  }
}

function keyOf({ stream, gate }: { readonly stream: number; readonly gate: number }): string {
  return `${stream} ${gate}`;
}

/** Each in turn, by chance: a claim that finds enough looks at no more. */
function some(spots: readonly Spot[]): readonly Spot[] {
  const first = Math.floor(Math.random() * spots.length);
  return [...spots.slice(first), ...spots.slice(0, first)].slice(0, SPOTS_PER_CLAIM_MAX);
}
