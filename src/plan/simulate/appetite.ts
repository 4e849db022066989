import { fewFree, RISE } from "../../core/claim-size.js";

// As in src/worker/claim.ts, which lies below this room and whose decisions this file repeats;
// test/plan/real.test.ts compares the two by what they do.

/** A claim on its way: what was asked for, and in which mood. */
export interface Claim {
  readonly want: number;
  readonly tells: boolean;
  readonly errand: boolean;
}

/**
 * When a worker claims and how many it asks for, as the worker itself decides: claims begin with one task
 * and grow fourfold while they come back full; one that came back short lets it fall asleep until the bell
 * rings or the poll comes.
 */
export class Appetite {
  readonly #permits: number;
  readonly #batchMax: number;
  #few = false;
  #filling = false;
  #feast = false;
  #curious = true;
  #announced = 0;
  #asleep = false;
  #drowsy = false;
  #telling = false;
  #claiming = 0;
  #pace = 1;

  constructor({ permits, batch: batchMax }: { permits: number; batch: number }) {
    this.#permits = permits;
    this.#batchMax = batchMax;
  }

  /** There may be something to claim. */
  wake(): void {
    this.#curious = true;
  }

  ring(tasks: number): void {
    this.#announced = Math.min(this.#announced + tasks, this.#batchMax);
  }

  /** What to ask for in a step that settles so many, with so many permits free. */
  next(settling: number, free: number): Claim {
    const errand = this.#asleep && !this.#feast && !this.#curious && this.#announced < RISE;
    this.#few = fewFree(this.#few, free + settling, this.#permits);
    this.#filling = this.#feast && (this.#few ? this.#filling && free > 0 : true);
    const usable = this.#few && !this.#filling ? settling : free + settling;
    const want = Math.min(usable, this.#batchMax, this.#most(settling, errand));
    if (want === 0) return { want, tells: false, errand };
    const tells = this.#tells(Math.max(0, want - settling), free);
    this.#curious = false;
    this.#announced = Math.max(0, this.#announced - want);
    this.#claiming++;
    if (tells) this.#telling = true;
    return { want, tells, errand };
  }

  #most(settling: number, errand: boolean): number {
    const mayClaim = this.#feast || (this.#claiming === 0 && (this.#curious || this.#announced > 0));
    if (settling === 0 && !mayClaim) return 0;
    // A task without limits lets nobody through when it ends: an errand fetches what was announced.
    return errand ? this.#announced : settling + Math.max(this.#pace, this.#announced);
  }

  #tells(extra: number, free: number): boolean {
    if (this.#telling) return false;
    if (!this.#asleep) return this.#drowsy && !this.#isFew(free);
    return extra >= RISE || this.#isFew(free - extra);
  }

  #isFew(free: number): boolean {
    return free <= 0 || (!this.#filling && fewFree(this.#few, free, this.#permits));
  }

  /** What the size of a claim says about the next. */
  learn(claim: Claim, claimed: number): void {
    if (claim.want === 0) return;
    this.#claiming--;
    if (claim.tells) this.#telling = false;
    const short = claimed < claim.want;
    if (!claim.errand || short) {
      this.#feast = !short;
      const grown = Math.min(this.#batchMax, 4 * Math.max(claimed, this.#pace));
      this.#pace = short ? Math.max(1, claimed) : grown;
    }
    if (claim.tells) {
      if (!short || !this.#asleep) this.#curious = true;
      this.#asleep = short;
      this.#drowsy = false;
    } else if (short && !this.#asleep) this.#drowsy = this.#curious = true;
  }
}
