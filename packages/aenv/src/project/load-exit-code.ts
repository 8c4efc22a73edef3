/** The exit code of a process whose environment has a top-level await that never settles; the same as Node's. */
export const UNSETTLED_AWAIT = 13;
