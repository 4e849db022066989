/**
 * The version of the schema: raised by every release that brings a migration or changes a function. In the code, because
 * a bundle has no SQL files beside it: a producer in one can still tell whether the schema fits.
 */
export const SCHEMA_VERSION = 1;
