/**
 * The number of the last migration. In the code, because a bundle has no migrations beside it: a
 * producer in one can still tell whether the schema fits.
 */
export const SCHEMA_VERSION = 27;
