/**
 * The version of the schema. Every release that adds a migration or changes a function raises it. It is in the code,
 * because a bundle has no SQL files beside it: a producer in a bundle can still check whether the schema fits.
 */
export const SCHEMA_VERSION = 2;
