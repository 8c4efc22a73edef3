import { Environment } from "@aenv/sdk";
import { describeNeeding } from "@aenv/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type World } from "./testing/world.ts";

/** Trees of the image: their files have the same content, and are changed in different ways. */
const TREES = 8;

const path = fc.constantFrom(
  ...[
    "a",
    "a/b",
    "a/f",
    "a/b/g",
    "c",
    "c/h",
    "c/i",
    "l",
    "new",
    "new/x",
    "new/y",
    "new/y/z",
    "a/new",
    "a/b/it's = 5% ünlü",
    "c/-n",
    "c/BYTE",
  ],
);
const user = fc.constantFrom("0", "7", "1000", "65534");
/** `half` of the size of a large file, of which only a few bytes are no hole. */
const treesWith = (half: string, early: string) => {
  const operation = fc.oneof(
    fc.tuple(fc.constantFrom("remove", "mkdir", "pipe", "hide"), path),
    fc.tuple(fc.constant("mkdir"), path),
    fc.tuple(fc.constant("write"), path, fc.string({ maxLength: 20 })),
    fc.tuple(fc.constant("sparse"), path, fc.constantFrom("3000000", half)),
    fc.tuple(fc.constantFrom("rename", "swap", "name"), path, path),
    fc.tuple(fc.constant("link"), path, fc.constantFrom("/etc/passwd", "a/f", "nowhere")),
    fc.tuple(fc.constant("mode"), path, fc.integer({ min: 0, max: 0o7777 }).map(String)),
    fc.tuple(fc.constant("owner"), path, user, user),
    fc.tuple(fc.constant("time"), path, fc.constantFrom("1700000000", "1600000000.123456789", early, "9000000000")),
    fc.tuple(fc.constant("attribute"), path, fc.constantFrom("user.a", "user.b=%", "user.overlay.opaque"), fc.string({ maxLength: 9 })),
    fc.tuple(fc.constant("acl"), path, fc.constantFrom("access", "default"), user),
    fc.tuple(fc.constant("capability"), path, fc.constantFrom("10", "13")),
  );
  return fc.array(fc.array(operation, { minLength: 5, maxLength: 25 }), { minLength: TREES, maxLength: TREES });
};

// In gVisor, the umask counts for what a new file gets of its folder's access control list, so no solution of that task has a reward. It does not
// know holes, so a large file is read as a whole, and it sets another time if it is given one before 1970.
describe.each([
  { runtime: "runc", shared: 1, half: "1000000000000", early: "-5.5" },
  { runtime: "runsc", shared: 0, half: "30000000", early: "1.5" },
] as const)("strict mode of terminal-bench with $runtime", ({ runtime, shared, half, early }) =>
  describeNeeding(runtime, "that this machine has", () =>
    describeNeeding("docker-registry", "and images of a registry", () => {
      let world: World;
      beforeAll(async () => {
        world = await startWorld({ engine: "oci", runtime }, ["exact-tree", "shared-folder"]);
      }, 300_000);
      afterAll(() => world?.[Symbol.asyncDispose](), 120_000);

      const open = (task: string) =>
        Environment.create(world.ref, { systemUrl: world.platform.controlUrl, environmentVariables: world.variables, task });
      const reward = async (env: Environment) => (await env.callReward({})) as unknown as { reward: number; raw_output: string };

      it("gives work that is a set-group-id bit and an access control list its reward", { timeout: 60_000 }, async () => {
        const tasks = ["--task", "exact-tree", "--task", "shared-folder"];
        expect(await world.rewards("oracle", tasks)).toEqual({ "exact-tree": [1], "shared-folder": [shared] });
        expect(await world.rewards("noop", tasks)).toEqual({ "exact-tree": [0], "shared-folder": [0] });
      });

      it("gives the tests a tree that equals the agent's in all that a file system keeps", { timeout: 300_000 }, async () => {
        await using env = await open("exact-tree");
        const property = fc.asyncProperty(treesWith(half, early), async (all) => {
          await env.reset({ task: "exact-tree" });
          const lines = all.flatMap((operations, at) => [
            `in /app/trees/${at}`,
            ...operations.map((one) => one.map((text) => encodeURIComponent(text).replace("BYTE", "%FF")).join(" ")),
          ]);
          const command = `set -e; perl /opt/build.pl <<'END'\n${lines.join("\n")}\nEND\nperl /opt/list.pl /app/trees > /app/listed`;
          expect((await env.callTool("bash", { command })).text).toContain("[exit code 0]");
          const { reward: equal, raw_output } = await reward(env);
          expect(equal, raw_output).toBe(1);
        });
        await fc.assert(property, { numRuns: 8, endOnFailure: true });
      });
    }),
  ),
);
