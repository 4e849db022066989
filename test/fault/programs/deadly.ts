// A worker whose key function kills its process.
import { limit, Sluice, task, type } from "../../../src/index.js";

interface DeadlyConfig {
  readonly url: string;
  readonly leaseMs: number;
}

/** A task whose key is decided in code, which may be that of another deployment. */
export const deadly = (onBad: () => void) =>
  task("deadly", {
    input: type<{ user: string }>(),
    output: type<string>(),
    limits: [
      {
        limit: limit("deadly-user", { perKey: 1 }),
        key: ({ user }) => {
          if (user === "bad") onBad();
          return user;
        },
      },
    ],
    retry: { attempts: 1 },
  });

/** Runs until its process ends. */
export const held = task("held");

if (process.env["FLEET_CONFIG"] !== undefined) {
  const { url, leaseMs } = JSON.parse(process.env["FLEET_CONFIG"]) as DeadlyConfig;
  const sluice = await Sluice.connect({ url, migrate: false });
  const kills = deadly(() => process.kill(process.pid, "SIGKILL"));
  const holds = held.handle(() => {
    process.stdout.write("holds\n");
    return new Promise(() => {});
  });
  const handlers = [kills.handle(({ user }) => user), holds];
  const worker = sluice.worker({ handlers, leaseMs, pollIntervalMs: 50 });
  process.once("SIGTERM", () => process.exit(0));
  await worker.start();
  process.stdout.write("ready\n");
}
