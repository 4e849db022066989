import { Client } from "./client/client.js";
import { open } from "./client/connect.js";
import type { ConnectOptions } from "./client/settings.js";
import { Worker, type WorkerOptions } from "./worker/worker.js";

/** Everything: a client that can also work. */
export class Sluice extends Client {
  static override async connect(options: ConnectOptions = {}): Promise<Sluice> {
    return new Sluice(await open(options));
  }

  readonly #workers = new Set<Worker>();

  /** A worker for these handlers. It begins with start(). */
  worker(options: WorkerOptions): Worker {
    const { listener, logger, log, settings } = this.connection;
    const { history, resultBytesMax } = settings;
    const onStopped = (): void => void this.#workers.delete(worker);
    const desk = { ...this.desk, listener, logger, log, history, resultBytesMax, onStopped };
    const worker = new Worker(desk, options);
    this.#workers.add(worker);
    return worker;
  }

  /** Stops the workers that are still running, then closes every connection. */
  override async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await super.close();
  }
}
