// The producers of a run.
import { Child } from "./child.js";
import type { ProducerOrders } from "./load/orders.js";
import { loadOf, type Theatre } from "./theatre.js";
import type { Options } from "./options.js";

const PRODUCERS = 2;
const BACKLOG_MAX = 1_000;
// A task can starve only while workers have room.
const CALM_BACKLOG_MAX = 400;
const STOP_MS_MAX = 60_000;

export class Crowd {
  readonly #children: readonly Child[];
  /** A number that was asked for is made at an even rate, whatever that leads to. */
  readonly #mayHold: boolean;
  #held = false;
  #backlogMax = BACKLOG_MAX;

  constructor(theatre: Theatre, options: Options, onWrong: (what: string) => void) {
    const { rate, tasks } = loadOf(options);
    this.#mayHold = tasks === null;
    this.#children = Array.from({ length: PRODUCERS }, (_, i) => {
      const orders: ProducerOrders = {
        name: `producer-${i + 1}`,
        url: theatre.producers.url,
        logUrl: theatre.logUrl,
        seed: options.seed,
        rate: rate / PRODUCERS,
        tasks: tasks === null ? null : Math.floor((tasks + i) / PRODUCERS),
        types: options.types,
        flows: turned(options.flows, i / PRODUCERS),
      };
      const child = new Child(theatre.programs.producer, orders);
      child.onNews(({ wrong }) => wrong !== undefined && onWrong(wrong));
      void child.gone.then(() => child.news.finished ?? onWrong(child.lastWords));
      return child;
    });
  }

  /** Tasks that were acknowledged. */
  get produced(): number {
    return this.#children.reduce((sum, { news }) => sum + (news.produced ?? 0), 0);
  }

  /** Everything was made that was asked for. */
  get finished(): boolean {
    return this.#children.every(({ alive }) => !alive);
  }

  /** With too much left to run they wait: a backlog takes long to end, and shows nothing new. */
  hold(backlog: number): void {
    if (!this.#mayHold) return;
    const held = backlog > (this.#held ? this.#backlogMax * 0.8 : this.#backlogMax);
    if (held === this.#held) return;
    this.#held = held;
    for (const child of this.#children) child.tell({ do: "hold", held });
  }

  /** From now on they leave the workers room. */
  calm(): void {
    this.#backlogMax = CALM_BACKLOG_MAX;
  }

  /** How far the database's clock is ahead of the machine's. */
  clock(aheadMs: number): void {
    for (const child of this.#children) child.tell({ do: "clock", aheadMs });
  }

  /** What was offered is acknowledged before they end. */
  async stop(): Promise<void> {
    const late = setTimeout(() => this.kill(), STOP_MS_MAX);
    for (const child of this.#children) child.tell({ do: "stop" });
    await Promise.all(this.#children.map(({ gone }) => gone));
    clearTimeout(late);
  }

  kill(): void {
    for (const child of this.#children) child.signal("SIGKILL");
  }
}

/** Each begins elsewhere, so that all are seen soon. */
function turned<T>(all: readonly T[], by: number): T[] {
  const first = Math.floor(all.length * by);
  return [...all.slice(first), ...all.slice(0, first)];
}
