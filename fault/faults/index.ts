// Every fault there is, in the order in which they are listed.
import type { Fault } from "../stage.js";
import { freezeBackend, freezeInClaim } from "./claim.js";
import { clockOff } from "./clock.js";
import { connections } from "./connections.js";
import { deadlock } from "./deadlock.js";
import { diskFull } from "./disk.js";
import { blockLoop, freeze } from "./freeze.js";
import { clockBack, clockForward } from "./jump.js";
import { kill } from "./kill.js";
import { limitLift, limitLower, limitRaise, limitZero } from "./limits.js";
import { loseClaim, loseEnqueue, loseSettle } from "./lose.js";
import { migrate } from "./migrate.js";
import { blackHole, halfOpen, slow } from "./network.js";
import { limitAdd, limitRemove } from "./own.js";
import { pause } from "./pause.js";
import { lateRollbackCancel, lateRollbackEnqueue } from "./rollback.js";
import { runCancel, runRetry, runWindow } from "./runs.js";
import { restart, terminateBackends } from "./server.js";
import { readOnly, statementTimeout } from "./setting.js";
import { longSnapshot } from "./snapshot.js";
import { cancel, retry } from "./tasks.js";
import { term } from "./term.js";

export const faults: readonly Fault[] = [
  kill,
  term,
  freeze,
  freezeInClaim,
  freezeBackend,
  blockLoop,
  terminateBackends,
  restart,
  readOnly,
  connections,
  statementTimeout,
  deadlock,
  blackHole,
  halfOpen,
  slow,
  loseEnqueue,
  loseClaim,
  loseSettle,
  diskFull,
  clockOff,
  clockForward,
  clockBack,
  longSnapshot,
  limitRaise,
  limitLower,
  limitZero,
  limitLift,
  limitRemove,
  limitAdd,
  pause,
  cancel,
  retry,
  lateRollbackEnqueue,
  lateRollbackCancel,
  runCancel,
  runRetry,
  runWindow,
  migrate,
];
