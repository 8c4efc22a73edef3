import { readFile, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { Episode } from "../episode.ts";
import { replaceText } from "../files/replace.ts";
import { tasks } from "./index.ts";
import { Random } from "./random.ts";
import { treeDigest, writeFiles } from "./tree.ts";

const never = new AbortController().signal;
const SEEDS = [0, 1, 2 ** 31];

describe("tasks", { timeout: 120_000 }, () => {
  it("are twelve, in two splits", () => {
    expect(tasks.length).toBe(12);
    expect(tasks.filter(({ split }) => split === "test").length).toBe(4);
  });

  it.each(tasks.map((task) => [task.id, task] as const))(
    "%s is solved by its solution and by nothing less, for any seed",
    async (_, task) => {
      await Promise.all(
        SEEDS.map(async (seed) => {
          const episode = await Episode.open({ task, seed, variables: {} });
          try {
            const before = await episode.score(never);
            expect([before.reward, before.problems.length > 0]).toEqual([0, true]);
            for (const action of episode.exercise?.solution ?? []) {
              if (!("tool" in action)) continue;
              await act(episode, action.tool, action.arguments as Record<string, string>);
            }
            expect(await episode.score(never)).toEqual({ reward: 1, problems: [] });
          } finally {
            await episode.terminal.close();
          }
        }),
      );
    },
  );

  it.each(tasks.map((task) => [task.id, task] as const))(
    "%s begins with the same files for the same seed, and other files for another",
    (_, task) => {
      const files = (seed: number) => task.begin(new Random(seed)).files;
      expect(files(7)).toEqual(files(7));
      if (task.id !== "fix-script") expect(files(8)).not.toEqual(files(7));
    },
  );

  it("are not solved by an answer for another seed, nor by changing what must stay", async () => {
    const task = tasks.find(({ id }) => id === "split-by-day");
    const episode = await Episode.open({ task: task ?? null, seed: 5, variables: {} });
    try {
      for (const action of episode.exercise?.solution ?? [])
        if ("tool" in action) await act(episode, action.tool, action.arguments as never);
      await act(episode, "execute_command", {
        command: "echo more >> by-day/2026-04-01.log; touch by-day/other.log; ln -sf /etc/passwd events.log",
      });
      expect(await episode.score(never)).toEqual({
        reward: 0,
        problems: [
          "by-day/other.log should not exist",
          "by-day/2026-04-01.log has another content than expected",
          "events.log is not a regular file",
        ],
      });
    } finally {
      await episode.terminal.close();
    }
  });

  it("have no reward in an episode without a task, which begins with an empty folder", async () => {
    const episode = await Episode.open({ task: null, seed: 0, variables: {} });
    try {
      await expect(episode.score(never)).rejects.toThrow("this episode has no task");
      const empty = await episode.digest();
      await writeFiles(episode.terminal.workFolder, { "a/b.txt": "b" });
      expect((await episode.digest()).files).not.toBe(empty.files);
      expect((await episode.digest()).files).toBe(await treeDigest(episode.terminal.workFolder));
    } finally {
      await episode.terminal.close();
    }
  });
});

/** The tools that solutions use. */
async function act({ terminal }: Episode, tool: string, args: Readonly<Record<string, string>>): Promise<void> {
  if (tool === "execute_command") {
    await terminal.run(args.command ?? "", { session: "main", timeoutMs: 60_000, signal: never });
    return;
  }
  expect(tool).toBe("edit_file");
  const path = `${terminal.workFolder}/${args.path}`;
  const options = { oldText: args.old_text ?? "", newText: args.new_text ?? "", isEverywhere: false };
  await writeFile(path, replaceText(await readFile(path, "utf8"), options).text);
}
