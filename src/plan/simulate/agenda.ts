type Act = () => void;

/**
 * The event queue: a heap ordered by time. Events due at the same moment run in the order in which they were added, so
 * that a run depends only on its seed.
 */
export class Agenda {
  nowMs = 0;
  readonly #times: number[] = [];
  readonly #turns: number[] = [];
  readonly #acts: Act[] = [];
  #turn = 0;

  /** Schedules an event in `ms` milliseconds. */
  after(ms: number, act: Act): void {
    const [times, turns, acts] = [this.#times, this.#turns, this.#acts];
    const time = this.nowMs + ms;
    const turn = this.#turn++;
    let at = times.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      // The newest event comes after all others of its moment, so their turns need no comparison.
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

  /** Runs the next event if it is due by `untilMs`; returns false if none is. */
  step(untilMs: number): boolean {
    const time = this.#times[0];
    if (time === undefined || time > untilMs) return false;
    const act = this.#acts[0]!;
    this.#removeFirst();
    this.nowMs = time;
    act();
    return true;
  }

  /** Moves the last event to the top, from where it sinks to its place. */
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
