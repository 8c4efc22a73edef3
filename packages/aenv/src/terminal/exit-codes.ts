/** What the `aenv` command ends with; the table is printed by `aenv --help`. */
export const exitCodes = {
  ok: { code: 0, meaning: "it worked" },
  failed: { code: 1, meaning: "it did not: the command, the tool or the environment's code failed" },
  usage: { code: 2, meaning: "the command line is wrong" },
  unreachable: { code: 69, meaning: "nothing answers at that address" },
  denied: { code: 77, meaning: "a token is needed, is wrong, or lacks the role" },
  cancelled: { code: 130, meaning: "stopped by Ctrl-C" },
} as const;
export type Exit = keyof typeof exitCodes;
