import type { Logger } from "../core/ports.js";
import { Events } from "./events.js";
import { MiddlewareChain } from "./middleware.js";

/** What users attach to all workers of one Sluice. */
export class Hooks {
  readonly events: Events;
  readonly middleware: MiddlewareChain;

  constructor(log: Logger) {
    this.events = new Events(log);
    this.middleware = new MiddlewareChain(log);
  }
}
