// Reads the metrics of the workers while faults happen to them, as a Prometheus would.
import type { WorkerFleet } from "./fleet.js";
import type { WorkerMember } from "./member.js";
import type { Log } from "./stage.js";

const PERIOD_MS = 1_000;
// Longer than a worker waits for the database before it answers without the numbers of limits.
const ANSWER_MS_MAX = 3_000;

export class Scraper {
  readonly #fleet: WorkerFleet;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  /** One at a time of each, so that what is written down of a member is in the order in which it was said. */
  readonly #asking = new Map<WorkerMember, Promise<void>>();

  constructor(fleet: WorkerFleet, log: Log) {
    this.#fleet = fleet;
    this.#log = log;
  }

  start(): void {
    this.#timer = setInterval(() => this.#ask(), PERIOD_MS);
  }

  /** What was asked is written down. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#asking.values());
  }

  #ask(): void {
    for (const member of this.#fleet.living()) {
      if (this.#asking.has(member)) continue;
      const asked = this.#scrape(member).finally(() => this.#asking.delete(member));
      this.#asking.set(member, asked);
    }
  }

  async #scrape({ metricsUrl, name }: WorkerMember): Promise<void> {
    if (metricsUrl === undefined) return;
    try {
      const signal = AbortSignal.timeout(ANSWER_MS_MAX);
      const response = await fetch(`${metricsUrl}/metrics`, { signal });
      const body = await response.text();
      const text = counters(body) || `${response.status} ${body.slice(0, 200)}`;
      await this.#log.write([{ kind: "scraped", process: name, text, last: false }]);
    } catch {
      // Killed, frozen, or blocked: what it said before is what counts.
    }
  }
}

/** What the audit reads of a scrape; the rest would be most of the log. */
export function counters(text: string): string {
  return text
    .split("\n")
    .filter((line) => /^sluice_worker_tasks_(completed|unconfirmed)_total /.test(line))
    .join("\n");
}
