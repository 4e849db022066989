import { open, type Connection } from "../client/connect.js";
import type { ConnectOptions } from "../client/settings.js";
import { Sluice } from "../sluice.js";
import type { EnqueueServices } from "../tasks/enqueue.js";
import type { Hooks } from "../worker/hooks.js";

/** A Sluice that exposes its parts to the test kit. */
export class Rehearsal extends Sluice {
  static async open(options: ConnectOptions): Promise<Rehearsal> {
    return new Rehearsal(await open(options));
  }

  get parts(): Connection & { readonly services: EnqueueServices; readonly hooks: Hooks } {
    return { ...this.connection, services: this.services, hooks: this.hooks };
  }
}
