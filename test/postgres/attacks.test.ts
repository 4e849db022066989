import { expect, test } from "vitest";
import {
  attemptsAtTheirEnd,
  completionBesideNewLimit,
  completionStaysOpen,
  isolationOfEach,
  noLease,
  otherIsolation,
  replyIsLost,
  survivedBesideSettle,
  sameIdTwice,
  suspectOfOneGate,
} from "./schedules/fence.js";
import { badLanes, craftedKeys, imitatedKeys } from "./schedules/keys.js";
import {
  backAboveTheNumber,
  busyCounter,
  claimBesideSet,
  concurrencyAdded,
  concurrencyAddedBesideCompletion,
  gatesThatAddUp,
  lateRollback,
  loweredByOne,
  loweredTotalOfTwo,
  loweredWhileRunning,
  missingGate,
  rebornAfterChange,
  setBesideBirth,
  setBesideReuse,
  twoClaimsOfOneGate,
} from "./schedules/numbers.js";
import { enqueueStaysOpen, newSetStaysOpen, serializableKeys } from "./schedules/open.js";
import { betterElsewhere, betterElsewhereOnReuse, nobodyForTheBetter, turnsByAge } from "./schedules/rivals.js";
import { observe, wanted, type Schedule } from "./schedules/schedule.js";
import {
  cancelBesideHandOver,
  cancelOfWaiterAborts,
  completionAborts,
  completionIsNotCommitted,
  crossedLanes,
  headIsLocked,
  laneVanishes,
  twoHandOvers,
  twoLimitsOfOneLevel,
  twoLooksAtAnOrderKey,
  unservedKeepsOrder,
} from "./schedules/waiters.js";

// The attacks of docs/internals/attacks.md. The schedules stand apart, because
// mutants.test.ts runs them again on schemas from which a guard was removed.
async function holds(...schedules: Schedule[]): Promise<void> {
  for (const s of schedules) expect(await observe(s)).toEqual(wanted(s));
}

test("attack 1: a waiter locked by a transaction that aborts is not forgotten", () => holds(cancelOfWaiterAborts));

test("attack 1: a completion that aborts, or is cut off, loses no slot and no waiter", () =>
  holds(completionAborts("rollback"), completionAborts("cut")));

test("attack 2: the same id twice in one batch settles once, under its own claim", () =>
  holds(sameIdTwice(0), sameIdTwice(5)));

test("attack 3: another isolation level is refused", () =>
  holds(otherIsolation("repeatable read"), otherIsolation("serializable"), isolationOfEach));

test("attack 4: a step admits in one ascending pass", () => holds(crossedLanes));

test("attack 5: what was claimed in a lost reply comes back while its worker goes on", () => holds(replyIsLost));

test("attack 5: what a worker survived with is left to the settle that has it in hand", () =>
  holds(survivedBesideSettle));

test("attack 6: bad lanes are refused at the door", () => holds(badLanes));

test("attack 7: slots re-used inside a step respect a lowered limit", () =>
  holds(
    loweredWhileRunning("total"),
    loweredWhileRunning("total", ["other"]),
    loweredWhileRunning("perKey"),
    loweredTotalOfTwo("set"),
    loweredTotalOfTwo("own"),
    loweredByOne,
    twoClaimsOfOneGate,
  ));

test("attack 7: a lane that is reborn knows the number in force", () => holds(rebornAfterChange));

test("attack 8: a locked head of an order key is not jumped", () =>
  holds(headIsLocked("rollback"), headIsLocked("commit")));

test("attack 9: a completion in a user's transaction holds no lane", () => holds(completionStaysOpen));

test("attack 10: an unregistered or expired worker can neither claim nor settle", () => holds(noLease));

test("attack 10: an attempt counter at its end fails its task and no claim", () => holds(attemptsAtTheirEnd));

test("attack 11: a slot goes to the better task of a stream that another worker serves", () =>
  holds(betterElsewhere, betterElsewhereOnReuse, turnsByAge));

test.each(["gone", "expired", "full", "draining", "paused"] as const)(
  "attack 11: a slot does not lie idle for a better task whose worker or queue is %s",
  (absence) => holds(nobodyForTheBetter(absence)),
);

test("attack 12: a limit added to a type counts what runs and holds back its backlog", () =>
  holds(concurrencyAdded(2), concurrencyAdded(4)));

test("attack 12: a limit added beside a completion that rolls back counts that task too", () =>
  holds(concurrencyAddedBesideCompletion));

test("attack 12: a limit added beside a completion does not take the task from its worker", () =>
  holds(completionBesideNewLimit));

test("a suspect that passes its type's own limit holds one slot of it", () => holds(suspectOfOneGate));

test("attack 12: a gate row that is missing does not mean never", () => holds(missingGate));

test("attack 13: keys crafted to meet do not share a lane", () => holds(craftedKeys));

test("attack 13: a key cannot imitate another limit's key", () => holds(imitatedKeys));

test("the lane lock: two hand-overs at once never exceed the capacity", () => holds(twoHandOvers));

test("a lane that vanishes under a step is looked at again", () =>
  holds(laneVanishes("order"), laneVanishes("perKey")));

test("a completion that is never committed does not keep its task", () => holds(completionIsNotCommitted));

test("the lock of an order key: two looks at once start one task", () => holds(twoLooksAtAnOrderKey));

test("a task passes two limits of one level", () => holds(twoLimitsOfOneLevel));

test("a task of a type that nobody serves keeps its place in its order key", () => holds(unservedKeepsOrder));

test("a cancel beside a hand-over neither waits nor loses the task", () => holds(cancelBesideHandOver));

test("a busy counter is not waited for by who has something to settle", () => holds(busyCounter));

test("a slot of one gate is not re-used for two others", () => holds(gatesThatAddUp));

test("the barrier: after set_limit has returned nothing is admitted above the new number", () =>
  holds(setBesideReuse, setBesideBirth));

test("the barrier: a claim beside an open change goes by the new number", () =>
  holds(claimBesideSet("total"), claimBesideSet("perKey")));

test("a cancel that rolls back after a limit was lowered brings nothing above it", () =>
  holds(
    lateRollback({ perKey: 3 }, 1, 3),
    lateRollback({ perKey: 3 }, 1, 1),
    lateRollback({ perKey: 3 }, 0, 1),
    lateRollback({ perKey: 3, total: 9 }, 1, 2),
  ));

test("a task that comes back after its limit was lowered does not start above it", () =>
  holds(backAboveTheNumber("release"), backAboveTheNumber("reap")));

test("an enqueue left open in a transaction blocks nobody", () => holds(enqueueStaysOpen));

test("a new set of totals in an open transaction blocks nobody who needs it", () => holds(newSetStaysOpen));

test("serializable transactions with new idempotency keys do not conflict", () => holds(serializableKeys));
