import type { Run } from "../../runs/run.js";
import type { RunStatus } from "../../runs/status.js";
import { showOn, type Screen } from "./screen.js";

/** Shows a run until it is over, then ends as the run did: throws `workflow_failed` or `workflow_cancelled`. */
export async function follow(run: Run, json: boolean, screen: Screen): Promise<void> {
  const show = json ? (status: RunStatus): void => void screen.write(`${JSON.stringify(status)}\n`) : showOn(screen);
  for await (const status of run.watch()) show(status);
  await run.result();
}
