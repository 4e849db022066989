// A fault that hits an idle worker shows nothing, so it waits for work first.
import type { Member, Stage } from "../stage.js";

const lookEveryMs = 5;

/** Waits until the worker has tasks in hand, and says how many; 0 when none came in time. */
export async function untilBusy(stage: Stage, member: Member, forMs = 3_000): Promise<number> {
  const end = performance.now() + forMs;
  while (!stage.signal.aborted && performance.now() < end) {
    const inHand = member.inHand();
    if (inHand > 0) return inHand;
    await stage.pause(lookEveryMs);
  }
  return 0;
}
