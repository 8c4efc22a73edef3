/** The exit code of a process whose environment waits while it is loaded for something that cannot happen any more; Node uses the same. */
export const UNSETTLED_AWAIT = 13;
