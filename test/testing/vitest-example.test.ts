// The example for vitest, unchanged: its tests are part of this run.
import "../../examples/testing/vitest.test.js";
