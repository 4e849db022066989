// What the harness and its processes say to each other.
import type { FlowName } from "./flows.js";
import type { TypeName } from "./terms.js";

/** What a process is started with, in FAULT_ORDERS. */
export interface Orders {
  readonly name: string;
  /** Through a proxy. */
  readonly url: string;
  readonly logUrl: string;
}

export interface WorkerOrders extends Orders {
  readonly tasksMax: number;
  readonly unserved: readonly TypeName[];
}

export interface ProducerOrders extends Orders {
  readonly seed: number;
  /** Tasks a second. */
  readonly rate: number;
  /** Exactly so many in all; null for as many as come until it is stopped. */
  readonly tasks: number | null;
  readonly types: readonly TypeName[];
  /** In turn. */
  readonly flows: readonly FlowName[];
}

export type ToProcess =
  | { readonly do: "block"; readonly ms: number }
  | { readonly do: "stop" }
  | { readonly do: "clock"; readonly aheadMs: number }
  | { readonly do: "hold"; readonly held: boolean };

/** What a process tells, whenever it changes. */
export interface News {
  /** It works. */
  readonly ready?: true;
  /** The event loop turns again. */
  readonly unblocked?: true;
  readonly inHand?: number;
  /** Tasks it had in hand when it was told to stop. */
  readonly stoppedWith?: number;
  /** Handlers that came to their end, in all. */
  readonly ended?: number;
  /** Warnings and errors it has logged, in all. */
  readonly logLines?: number;
  readonly rssBytes?: number;
  /** Where a worker serves its metrics. */
  readonly metricsUrl?: string;
  /** Tasks that were acknowledged, in all. */
  readonly produced?: number;
  /** All that was asked for is done. */
  readonly finished?: true;
  /** Something that no fault explains. */
  readonly wrong?: string;
}

export function ordersText(): string {
  return process.env["FAULT_ORDERS"] ?? "{}";
}

/** News of one turn of the event loop go out together. */
export class Reporter {
  #news: Record<string, unknown> = {};
  #due = false;

  tell(news: News): void {
    Object.assign(this.#news, news);
    if (this.#due) return;
    this.#due = true;
    setImmediate(() => {
      this.#due = false;
      const told = this.#news;
      this.#news = {};
      // Without a harness there is nobody to tell, and nothing to live for: see below.
      if (process.connected) process.send?.(told);
    });
  }
}

/** Whoever started us is gone: nobody will ever stop us. */
export function endWithHarness(): void {
  process.once("disconnect", () => process.exit(1));
}
