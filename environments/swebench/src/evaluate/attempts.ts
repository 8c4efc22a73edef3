/** The folder of the repository in the sandbox. */
export const REPOSITORY = "/testbed";

/** Where the patch is written in the sandbox. */
export const PATCH_FILE = "/tmp/patch.diff";

/** Commands that apply the patch, without a shell, in the repository. The first that exits with 0 ends the sequence. */
export const ATTEMPTS: readonly (readonly string[])[] = [
  ["git", "apply", "--verbose", PATCH_FILE],
  ["git", "apply", "--verbose", "--3way", PATCH_FILE],
  ["git", "apply", "--verbose", "--reject", PATCH_FILE],
  ["patch", "--batch", "--forward", "--fuzz=5", "-p1", "-i", PATCH_FILE],
];

/** Before each attempt but the first: removes what the attempt before left. Its result is ignored. */
export const RESET: readonly string[] = ["/bin/bash", "-c", "git checkout -- . ; git clean -fd"];

/** After the last attempt: exits with 0 if the repository already has the changes. */
export const REVERSE_CHECK: readonly string[] = ["git", "apply", "--check", "--reverse", PATCH_FILE];

export const APPLIED = ">>>>> Applied Patch";
export const APPLY_FAILED = ">>>>> Patch Apply Failed";
