type Act = () => void;

/**
 * What happens when: a heap of moments. What is due at one moment happens in the order in which it was put
 * in, so that a run depends on its seed only.
 */
export class Agenda {
  nowMs = 0;
  readonly #times: number[] = [];
  readonly #turns: number[] = [];
  readonly #acts: Act[] = [];
  #turn = 0;

  /** After so many milliseconds from now. */
  after(ms: number, act: Act): void {
    const [times, turns, acts] = [this.#times, this.#turns, this.#acts];
    const time = this.nowMs + ms;
    const turn = this.#turn++;
    let at = times.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      // The newest comes after all others of its moment: their turns need no comparing.
      if (times[parent]! <= time) break;
      times[at] = times[parent]!;
      turns[at] = turns[parent]!;
      acts[at] = acts[parent]!;
      at = parent;
    }
    times[at] = time;
    turns[at] = turn;
    acts[at] = act;
  }

  /** Does what is next, if it is due by then; false if nothing is. */
  step(untilMs: number): boolean {
    const time = this.#times[0];
    if (time === undefined || time > untilMs) return false;
    const act = this.#acts[0]!;
    this.#removeFirst();
    this.nowMs = time;
    act();
    return true;
  }

  /** The last one goes to the top and sinks to its place. */
  #removeFirst(): void {
    const [times, turns, acts] = [this.#times, this.#turns, this.#acts];
    const [time, turn, act] = [times.pop()!, turns.pop()!, acts.pop()!];
    const size = times.length;
    if (size === 0) return;
    let at = 0;
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && this.#isBefore(child + 1, times[child]!, turns[child]!)) child++;
      if (!this.#isBefore(child, time, turn)) break;
      times[at] = times[child]!;
      turns[at] = turns[child]!;
      acts[at] = acts[child]!;
      at = child;
    }
    times[at] = time;
    turns[at] = turn;
    acts[at] = act;
  }

  #isBefore(at: number, time: number, turn: number): boolean {
    const difference = this.#times[at]! - time;
    return difference < 0 || (difference === 0 && this.#turns[at]! < turn);
  }
}
