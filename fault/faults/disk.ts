// The disk under the server is full.
import type { Fault } from "../stage.js";

export const diskFull: Fault = {
  name: "disk-full",
  about: "the server's disk is full for 1 to 2 s; the server is restarted if it crashes",
  disturbs: "server",
  bite: (stage, random) =>
    stage.disturbing("*", "disk-full", async () => {
      const before = await stage.server.errors("53100");
      try {
        await stage.server.fillDisk();
        await stage.pause(random.between(1_000, 2_000));
      } finally {
        await stage.server.freeDisk();
        await stage.server.ensureUp();
      }
      return (await stage.server.errors("53100")) > before ? 1 : 0;
    }),
};
