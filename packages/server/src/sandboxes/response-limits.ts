const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;

/**
 * The largest response that the server reads from a sandbox into its own memory, by kind of request. Sandboxes run untrusted code, and
 * an endless response must not exhaust the server's memory. Calls through the gateway are streamed and have no such limit.
 */
export const responseLimits = {
  /** A process loads a bundle. */
  bind: 64 * KIBIBYTE,
  /** An instance is created or deleted. */
  instance: 64 * KIBIBYTE,
  /** Up to a thousand forks. */
  fork: MEBIBYTE,
  /** The instances in a shared process. */
  list: 32 * MEBIBYTE,
  /** Tools and functions with their schemas. */
  offer: 16 * MEBIBYTE,
  /** The task and the first observation. */
  reset: 16 * MEBIBYTE,
  /** A snapshot; the kit accepts no larger one. */
  state: 16 * MEBIBYTE,
} as const satisfies Record<string, number>;
