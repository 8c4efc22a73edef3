/** The documents for users of a clone, which `clone.test.ts` runs. The others are run with the published package. */
export const cloneTexts = [
  "README.md",
  "environments/echo/README.md",
  "environments/games/README.md",
  "environments/terminal-bench/README.md",
  "examples/agent/README.md",
  "examples/agents/README.md",
  "examples/all-in-one/README.md",
];
