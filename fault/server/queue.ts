// The server of the queue, which is restarted, filled up and shut out from.
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { startEmbedded, type Embedded } from "../../src/embedded/index.js";
import { findPostmaster } from "../../src/embedded/server.js";
import type { QueueServer } from "../stage.js";
import type { Disk } from "./disk.js";
import { ErrorCount, type Deadlocks } from "./errors.js";

const SETTINGS = {
  // A restart that does not take the machine with it loses nothing that was written.
  fsync: "off",
  synchronous_commit: "on",
  max_connections: "80",
  deadlock_timeout: "200ms",
  max_wal_size: "96MB",
  autovacuum_naptime: "5s",
  // What the faults count; see ErrorCount.
  log_line_prefix: "%e %a|",
  log_min_error_statement: "panic",
  log_checkpoints: "off",
};
const LOOK_EVERY_MS = 20;
const GONE_MS_MAX = 10_000;
const UP_MS_MAX = 60_000;

export class QueueServerProcess implements QueueServer {
  readonly url: string;
  readonly dataDir: string;
  readonly #disk: Disk;
  readonly #port: number;
  readonly #errors: ErrorCount;
  #embedded: Embedded;
  /** One thing at a time: a fault and the end of the run may both want to start it. */
  #turn: Promise<void> = Promise.resolve();

  private constructor(embedded: Embedded, disk: Disk, errors: ErrorCount) {
    this.#embedded = embedded;
    this.url = embedded.url;
    this.dataDir = join(embedded.dataDir, "pgdata");
    this.#port = Number(new URL(embedded.url).port);
    this.#disk = disk;
    this.#errors = errors;
  }

  /** `logFile` lies elsewhere: the server must be able to tell that its disk is full. */
  static async start(disk: Disk, logFile: string): Promise<QueueServerProcess> {
    const root = join(disk.path, "queue");
    mkdirSync(root, { mode: 0o711 });
    writeFileSync(logFile, "");
    symlinkSync(logFile, join(root, "postgres.log"));
    const embedded = await startEmbedded({ dataDir: root, settings: SETTINGS });
    return new QueueServerProcess(embedded, disk, new ErrorCount(logFile));
  }

  restartImmediately(): Promise<void> {
    return this.#next(async () => {
      const running = findPostmaster(this.dataDir);
      if (running !== undefined) {
        process.kill(running.pid, "SIGQUIT");
        await this.#gone();
      }
      await this.#startAgain();
    });
  }

  ensureUp(): Promise<void> {
    return this.#next(async () => {
      const end = performance.now() + UP_MS_MAX;
      while (!(await this.#answers())) {
        if (performance.now() > end) throw new Error("the queue's server does not come up");
        if (findPostmaster(this.dataDir) === undefined) await this.#startAgain();
        else await delay(LOOK_EVERY_MS);
      }
    });
  }

  fillDisk(): Promise<void> {
    return this.#disk.fill();
  }

  freeDisk(): Promise<void> {
    return this.#disk.free();
  }

  errors(sqlstate: string): Promise<number> {
    return this.#errors.of(sqlstate);
  }

  deadlocks(): Promise<Deadlocks> {
    return this.#errors.deadlocks();
  }

  async stop(): Promise<void> {
    await this.#turn;
    await this.#embedded.stop();
  }

  async #startAgain(): Promise<void> {
    await this.#embedded.stop();
    const dataDir = join(this.#disk.path, "queue");
    this.#embedded = await startEmbedded({ dataDir, port: this.#port, settings: SETTINGS });
  }

  async #gone(): Promise<void> {
    const end = performance.now() + GONE_MS_MAX;
    while (findPostmaster(this.dataDir) !== undefined) {
      if (performance.now() > end) throw new Error("the queue's server does not go down");
      await delay(LOOK_EVERY_MS);
    }
  }

  async #answers(): Promise<boolean> {
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 2_000 });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("select 1");
      return true;
    } catch {
      return false;
    } finally {
      void client.end().catch(() => {});
    }
  }

  #next(act: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(act);
    this.#turn = turn.catch(() => {});
    return turn;
  }
}
