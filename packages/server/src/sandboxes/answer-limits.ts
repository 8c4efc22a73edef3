const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;

/**
 * The largest answer that the server reads from a sandbox into its own memory, by what it asked. Sandboxes run code of others, and one
 * that answers without end must not take the server's memory. Calls through the gateway are passed on piece by piece and have no such limit.
 */
export const answerLimits = {
  /** A process took a bundle. */
  bind: 64 * KIBIBYTE,
  /** An instance was created or ended. */
  instance: 64 * KIBIBYTE,
  /** Up to a thousand forks were made. */
  fork: MEBIBYTE,
  /** Which instances a shared process holds. */
  list: 32 * MEBIBYTE,
  /** Tools and functions with their schemas. */
  offer: 16 * MEBIBYTE,
  /** The task and the first observation. */
  reset: 16 * MEBIBYTE,
  /** A snapshot; the kit takes no larger one back. */
  state: 16 * MEBIBYTE,
} as const satisfies Record<string, number>;
