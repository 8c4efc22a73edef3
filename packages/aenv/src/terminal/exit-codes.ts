/** The exit codes of the `aenv` command; `aenv --help` prints this table. */
export const exitCodes = {
  ok: { code: 0, meaning: "success" },
  failed: { code: 1, meaning: "the command, the tool or the environment's code failed" },
  usage: { code: 2, meaning: "the command line is wrong" },
  unreachable: { code: 69, meaning: "the address cannot be reached" },
  denied: { code: 77, meaning: "the token is missing, is invalid, or lacks the role" },
  cancelled: { code: 130, meaning: "stopped by Ctrl-C" },
} as const;
export type Exit = keyof typeof exitCodes;
