import { task, tickTime, type, type Sluice } from "../../../src/index.js";

export const report = task("report", { input: type<{ shop: string; at: string }>() });

/** Every process may call this when it starts. */
export async function schedule(sluice: Sluice): Promise<void> {
  await sluice.schedules.set("nightly-report", {
    cron: "0 3 * * *",
    timeZone: "Europe/Berlin",
    task: report,
    input: { shop: "north", at: tickTime },
  });
}
