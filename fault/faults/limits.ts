// An operator's hand on the numbers, under load. Each is put back afterwards, so that every one of
// these raises and lowers.
import type { Fault } from "../stage.js";
import { changed, seen, withNumber } from "./number.js";

export const limitRaise: Fault = {
  name: "limit-raise",
  about: "a full limit is raised to twice its slots plus one, until more slots are in use than before",
  disturbs: "work",
  bite: (stage) =>
    withNumber(
      stage,
      (n) => n.slots > 0 && n.used >= n.slots,
      (n) =>
        changed(stage, n, 2 * n.slots + 1, () =>
          seen(stage, n, { forMs: 2_000, toTheEnd: false }, (used) => used > n.slots),
        ),
    ),
};

export const limitLower: Fault = {
  name: "limit-lower",
  about: "a limit with more than half of its slots in use is lowered to half for 1 to 2 s",
  disturbs: "work",
  bite: (stage, random) =>
    withNumber(
      stage,
      (n) => n.slots > 1 && n.used > Math.floor(n.slots / 2),
      (n) => {
        const half = Math.floor(n.slots / 2);
        const looked = { forMs: random.between(1_000, 2_000), toTheEnd: true };
        // Full at its lower number: so it is that number which holds the others back.
        return changed(stage, n, half, () => seen(stage, n, looked, (used) => used >= half));
      },
    ),
};

export const limitZero: Fault = {
  name: "limit-zero",
  about: "a limit in use is set to 0 for a second: running tasks end, none starts",
  disturbs: "work",
  bite: (stage) =>
    withNumber(
      stage,
      (n) => n.used > 0,
      (n) => changed(stage, n, 0, () => seen(stage, n, { forMs: 1_000, toTheEnd: true }, (used) => used === 0)),
    ),
};

export const limitLift: Fault = {
  name: "limit-lift",
  about: "a full limit is lifted (null) until more slots are in use than it had, and then restored",
  disturbs: "work",
  bite: (stage) =>
    withNumber(
      stage,
      (n) => n.slots > 0 && n.used >= n.slots,
      (n) => changed(stage, n, null, () => seen(stage, n, { forMs: 2_000, toTheEnd: false }, (used) => used > n.slots)),
    ),
};
