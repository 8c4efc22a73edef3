/**
 * Files that attack, kill or load servers, or play many rollouts. They have almost half of the processor time of the tests that need no
 * component, so `npm run test:fast` leaves them out, unless it is given a name.
 */
export const longFiles: readonly string[] = [
  "bench/src/{platform/platform,rollout/rollout}.test.ts",
  "environments/mini-terminal/src/platform-tests/rollout.test.ts",
  "packages/aenv/src/commands/{backup,end-to-end,replay,rescore,rollout-resume}.test.ts",
  "packages/aenv/src/commands/bench/run.test.ts",
  "packages/aenv/src/platform-tests/{abuse,children,crash,crash-trees,hostile-*,openenv-web-sockets,services,workers}.test.ts",
  "packages/aenv/src/platform-tests/memory/**",
  "packages/contract/src/timed-signal.test.ts",
  "packages/kit/src/serve/many-instances.test.ts",
  "packages/rollout/src/run/faults.test.ts",
];
