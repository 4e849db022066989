import { Client } from "./client/client.js";
import { open } from "./client/connect.js";
import { apiShare } from "./config/connections.js";
import type { ConnectOptions } from "./client/settings.js";
import type { SluiceEventName, SluiceEvents } from "./worker/events.js";
import { Hooks } from "./worker/hooks.js";
import type { Middleware } from "./worker/middleware.js";
import { Worker, type WorkerOptions } from "./worker/worker.js";

/** A client that can also run workers. */
export class Sluice extends Client {
  static override async connect(options: ConnectOptions = {}): Promise<Sluice> {
    return new Sluice(await open(options, startServer));
  }

  /** @internal */
  protected readonly hooks = new Hooks(this.connection.log);
  readonly #workers = new Set<Worker>();

  /**
   * The URL of the server that `embedded: true` started, for psql and for other processes; null without one. It works
   * until close().
   */
  get embeddedUrl(): string | null {
    return this.connection.embeddedUrl;
  }

  /** Creates a worker for these handlers. It starts claiming after start(). */
  worker(options: WorkerOptions): Worker {
    this.checkOpen();
    const { listener, logger, log, settings } = this.connection;
    const { history, resultBytesMax, layers } = settings;
    const apiConnections = apiShare(settings);
    const onStopped = (): void => void this.#workers.delete(worker);
    const mine = { hooks: this.hooks, listener, logger, log, history, resultBytesMax, layers, apiConnections };
    const first = this.#workers.size === 0;
    const services = { ...this.services, ...mine, first, onStopped };
    const worker = new Worker(services, options);
    this.#workers.add(worker);
    return worker;
  }

  /**
   * Calls the listener for what the workers of this instance do. Outcomes are reported after the database has recorded
   * them; an outcome that was lost with its lease is not. Events are best-effort: one may be missing after a crash or a
   * lost connection. An error of a listener is logged. Returns a function that removes the listener.
   */
  on<Name extends SluiceEventName>(event: Name, listener: (event: SluiceEvents[Name]) => unknown): () => void {
    this.checkOpen();
    return this.hooks.events.on(event, listener);
  }

  /**
   * Runs the middleware around every execution that begins from now on, in all workers of this instance. The first one
   * in use is the outermost. Returns a function that removes it.
   */
  use(middleware: Middleware): () => void {
    this.checkOpen();
    return this.hooks.middleware.use(middleware);
  }

  /**
   * Stops all running workers, each with a grace period of `graceMs` (default 20 s), then closes every connection. A
   * handler that ignores its signal keeps the process alive: exit once this promise resolves.
   */
  override async close(options: { readonly graceMs?: number } = {}): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop(options)));
    await super.close();
  }
}

/** Imported on demand, so production processes do not load it. */
async function startServer() {
  const { startEmbedded } = await import("./embedded/index.js");
  return startEmbedded();
}
