import { type Tree, temporaryTree } from "@aenv/testing";
import { aenv } from "aenvironment/cli-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

describe("mini-terminal through aenv rollout", { timeout: 300_000 }, () => {
  let tree: Tree;
  beforeAll(() => {
    tree = temporaryTree();
  });
  afterAll(() => tree?.[Symbol.dispose]());

  const command = async (...argv: readonly string[]) => {
    const { code, stdout, stderr } = await aenv([...argv, "--json"], { cwd: tree.path });
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    return JSON.parse(stdout);
  };

  it("scores 1 for its own solutions, and a replay of them is equal", async () => {
    expect(await command("rollout", "mini-terminal", "--run", "solved", "--digests")).toMatchObject({
      episodes: 12,
      scored: 12,
      unscored: {},
      reward: { mean: 1 },
    });
    expect(await command("replay", "solved")).toMatchObject({ equal: 12, unequal: [] });
  });
});
