import type { Logger } from "../core/ports.js";
import { MiddlewareChain } from "./middleware.js";

/** What users attach to all workers of one Sluice. */
export class Hooks {
  readonly middleware: MiddlewareChain;

  constructor(log: Logger) {
    this.middleware = new MiddlewareChain(log);
  }
}
