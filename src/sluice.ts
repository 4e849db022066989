import { Client, open, type ConnectOptions } from "./client/client.js";
import { Worker, type WorkerOptions } from "./worker/worker.js";

/** Everything: a client that can also work. */
export class Sluice extends Client {
  static override async connect(options: ConnectOptions = {}): Promise<Sluice> {
    return new Sluice(await open(options));
  }

  readonly #workers = new Set<Worker>();

  /** A worker for these handlers. It begins with start(). */
  worker(options: WorkerOptions): Worker {
    const { db, listener, logger } = this.connection;
    const worker = new Worker(
      {
        ...this.desk,
        db,
        listener,
        logger,
        history: this.history,
        resultBytesMax: this.resultBytesMax,
      },
      options,
    );
    this.#workers.add(worker);
    return worker;
  }

  /** Stops the workers that are still running, then closes every connection. */
  override async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await super.close();
  }
}
