// The example for vitest, as it stands: its tests are part of this run.
import "../../examples/testing/vitest.test.js";
