import type { Facts } from "../result.js";
import type { Place } from "../stores.js";

/** What a server has used so far. */
interface Reading {
  readonly cpuMs: number | null;
  readonly walBytes: number | null;
}

/** What a server uses between two moments. */
export class Meter {
  readonly #place: Place;
  readonly #before: Reading;

  private constructor(place: Place, before: Reading) {
    this.#place = place;
    this.#before = before;
  }

  static async start(place: Place): Promise<Meter> {
    return new Meter(place, await read(place));
  }

  /** Per task; what cannot be seen is left out. served: how many the server saw, if not the same. */
  async facts(tasks: number, nodeCpuMs: number, served = tasks): Promise<Facts> {
    const after = await read(this.#place);
    const cpuMs = difference(after.cpuMs, this.#before.cpuMs);
    const walBytes = difference(after.walBytes, this.#before.walBytes);
    const node = (nodeCpuMs * 1_000) / tasks;
    const database = cpuMs === null ? null : (cpuMs * 1_000) / served;
    return {
      nodeCpuMsPer1000: node,
      // Milliseconds per 1,000 tasks are microseconds per task.
      ...(database === null ? {} : { databaseCpuMsPer1000: database, cpuUsPerTask: node + database }),
      ...(walBytes === null ? {} : { walBytesPerTask: walBytes / served }),
    };
  }
}

async function read(place: Place): Promise<Reading> {
  return { cpuMs: place.cpuMs(), walBytes: await place.walBytes() };
}

function difference(after: number | null, before: number | null): number | null {
  return after === null || before === null ? null : after - before;
}
