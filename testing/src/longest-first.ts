import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files of minutes. Started late, they would run while other processors have nothing left to do. */
const longest = [
  "packages/aenv/src/first-use/docs.test.ts",
  "packages/sandbox/src/oci/crash.test.ts",
  "packages/aenv/src/first-use/clone.test.ts",
  "packages/aenv/src/packed.test.ts",
  "packages/sandbox/src/docker/engine.test.ts",
  "environments/tau2/src/platform-tests/rollout.test.ts",
  "environments/terminal-bench/src/platform-tests/oci.test.ts",
  "packages/aenv/src/platform-tests/crash.test.ts",
  "packages/aenv/src/platform-tests/abuse.test.ts",
  "packages/sandbox/src/oci/engine.test.ts",
  "packages/aenv/src/platform-tests/services.test.ts",
  "packages/aenv/src/platform-tests/hostile-environments.test.ts",
  "packages/aenv/src/platform-tests/oci-snapshots.test.ts",
];

/** The order of vitest, which knows only the sizes of files on a new machine, but the longest files first. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((path) => moduleId.endsWith(path));
      return at === -1 ? longest.length : at;
    };
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}
